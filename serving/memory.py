"""The amount of memory that this process may use."""

from __future__ import annotations

import os
from pathlib import Path

from pretrained import settings
from serving import gpu

VARIABLE = settings.MEMORY.name
GROUPS, GROUPS_ROOT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
UNKNOWN_BYTES = 8 * 1024**3  # assumed if the system doesn't report it


def memory_bytes(groups: Path = GROUPS, root: Path = GROUPS_ROOT) -> int:
    """Bytes of memory that this process may use.

    This is the smallest of four sizes: the memory of the machine, the limit of its container,
    ATTENTION_LAB_MEMORY_GB (in 10^9 bytes), and the memory of the GPU if models run on one, because
    most of the cached data is models.
    groups: the file in which Linux lists the control groups of this process. root: the folder with
    the limits of all groups. A process belongs to a group and all its parents, each of which may
    have a limit. A limit of "max", or above the machine's memory, has no effect.
    Source: https://docs.kernel.org/admin-guide/cgroup-v2.html and cgroup-v1/memory.html there.
    Raises ValueError if the variable isn't a number above 0.
    """
    others = [settings.MEMORY.read(), gpu.memory_bytes()]
    return min([_machine_bytes(), *_group_limits(groups, root), *filter(None, others)])


def _machine_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not a Unix
        return UNKNOWN_BYTES


def _group_limits(groups: Path, root: Path) -> list[int]:
    """The memory limits of all control groups (version 1 or 2) of this process."""
    files = limit_files(groups, root, "", "memory.max")
    files |= limit_files(groups, root, "memory", "memory.limit_in_bytes")
    limits = [read_small_file(file).strip() for file in files]
    return [int(limit) for limit in limits if limit.isdecimal() and int(limit) > 0]


def limit_files(groups: Path, root: Path, controller: str, name: str) -> set[Path]:
    """Files that may contain a limit: `name` in every control group of this process.

    controller: the version 1 controller, such as "memory"; "" for version 2.
    """
    files = {root / controller / name}
    for line in read_small_file(groups).splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if ".." in path:  # not visible from inside this container
            continue
        is_version_2 = number == "0" and not controllers
        if is_version_2 if not controller else controller in controllers.split(","):
            files |= _ancestor_files(root / controller, path, name)
    return files


def _ancestor_files(root: Path, path: str, name: str) -> set[Path]:
    """The file `name` of a group and of all its parent groups."""
    group = Path(path.strip("/"))
    return {root / part / name for part in (group, *group.parents)}


def read_small_file(file: Path) -> str:
    """The contents of a small system file; empty if it can't be read."""
    try:
        return file.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""
