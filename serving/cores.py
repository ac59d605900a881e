"""The machine's processor, and the number of cores that this process may use."""

from __future__ import annotations

import math
import os
import platform
from pathlib import Path

from serving.memory import GROUPS, GROUPS_ROOT, limit_files, read_small_file

VARIABLE = "OMP_NUM_THREADS"  # torch reads it too


def cores(groups: Path = GROUPS, root: Path = GROUPS_ROOT) -> int:
    """The number of cores that this process may use, at least 1.

    This is the smallest of three numbers: the cores the system lets this process run on, the CPU
    quota of its container, and OMP_NUM_THREADS. A container may have a quota of 2 of 32 cores, for
    example. Its processes see all 32, but are paused once they've used up their quota. A quota of
    1.5 counts as 2.
    groups, root: as in `serving.memory.memory_bytes`.
    Source: https://docs.kernel.org/admin-guide/cgroup-v2.html and, for version 1,
    https://docs.kernel.org/scheduler/sched-bwc.html
    """
    return min([_system_cores(), *_cpu_quotas(groups, root), *_requested_cores()])


def machine() -> str:
    """The name of this machine's processor and its number of cores."""
    names = Path("/proc/cpuinfo")
    lines = names.read_text(encoding="utf-8").splitlines() if names.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{models[0] if models else platform.processor()}, {os.cpu_count()} cores"


def _system_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


def _cpu_quotas(groups: Path, root: Path) -> list[int]:
    """The CPU quotas, in cores, of all control groups of this process that have one."""
    quotas = [read_small_file(file).split() for file in limit_files(groups, root, "", "cpu.max")]
    for file in limit_files(groups, root, "cpu", "cpu.cfs_quota_us"):
        quotas.append([read_small_file(file), read_small_file(file.with_name("cpu.cfs_period_us"))])
    return [
        max(1, math.ceil(int(quota) / int(period)))
        for quota, period in (pair for pair in quotas if len(pair) == 2)
        if quota.strip().isdecimal() and period.strip().isdecimal() and int(period) > 0
    ]


def _requested_cores() -> list[int]:
    """OMP_NUM_THREADS if it's a positive integer; torch also ignores other values."""
    text = os.environ.get(VARIABLE, "").strip()
    return [int(text)] if text.isdecimal() and int(text) > 0 else []
