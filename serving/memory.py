"""How much memory this process may use."""

from __future__ import annotations

import os
from pathlib import Path

from pretrained import settings
from serving import gpu

VARIABLE = settings.MEMORY.name
GROUPS, GROUPS_ROOT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
UNKNOWN_BYTES = 8 * 1024**3  # where the system does not say


def memory_bytes(groups: Path = GROUPS, root: Path = GROUPS_ROOT) -> int:
    """Bytes of memory: the limit of the container if there is one, else those of the machine.

    Where models run on a GPU that has less, those of the GPU: most of what is kept are models.
    Whoever runs the site may allow less, in ATTENTION_LAB_MEMORY_GB (gigabytes of 10^9 bytes).
    groups: the file in which Linux lists the control groups of this process. root: the folder with
    the limits of all groups. A process is in a group and in all groups around it, each of which may
    have a limit; "max" and limits over the machine's memory are none.
    Source: https://docs.kernel.org/admin-guide/cgroup-v2.html and cgroup-v1/memory.html there.
    Raises ValueError where the variable holds no number above 0.
    """
    others = [settings.MEMORY.read(), gpu.memory_bytes()]
    return min([_machine_bytes(), *_group_limits(groups, root), *filter(None, others)])


def _machine_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not a Unix
        return UNKNOWN_BYTES


def _group_limits(groups: Path, root: Path) -> list[int]:
    """The memory limits of all groups of this process, from control groups of version 2 or 1."""
    files = limit_files(groups, root, "", "memory.max")
    files |= limit_files(groups, root, "memory", "memory.limit_in_bytes")
    limits = [text_of(file).strip() for file in files]
    return [int(limit) for limit in limits if limit.isdecimal() and int(limit) > 0]


def limit_files(groups: Path, root: Path, controller: str, name: str) -> set[Path]:
    """Where a limit may stand: files called `name` of every group that this process is in.

    controller: what version 1 has a folder of groups for, such as "memory"; "" for version 2.
    """
    files = {root / controller / name}
    for line in text_of(groups).splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if ".." in path:  # outside of what this container sees
            continue
        is_version_2 = number == "0" and not controllers
        if is_version_2 if not controller else controller in controllers.split(","):
            files |= _around(root / controller, path, name)
    return files


def _around(root: Path, path: str, name: str) -> set[Path]:
    """The file `name` of a group and of every group around it."""
    group = Path(path.strip("/"))
    return {root / part / name for part in (group, *group.parents)}


def text_of(file: Path) -> str:
    """What a small file of the system says; nothing where it cannot be read."""
    try:
        return file.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""
