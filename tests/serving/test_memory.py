"""Test memory detection: Linux control groups, the machine, or as configured."""

import os
from pathlib import Path

import pytest

from serving.memory import VARIABLE, memory_bytes

MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
MB = 1024**2


def write(path: Path, text: str) -> None:
    """Write a file and create its parent folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def limit(folder: Path, groups: str = "0::/\n", **files: str) -> int:
    """Return the detected limit, given these control group files ("/" written as "__")."""
    write(folder / "cgroup", groups)
    for name, text in files.items():
        write(folder / "root" / name.replace("__", "/").replace("_max", ".max"), text)
    return memory_bytes(folder / "cgroup", folder / "root")


@pytest.mark.parametrize("text", ["max\n", "-1\n", "9223372036854771712\n"])
def test_no_limit_means_the_machines_memory(tmp_path: Path, text: str):
    assert limit(tmp_path, memory_max=text) == MACHINE


def test_service_has_the_smallest_limit_of_all_enclosing_groups(tmp_path: Path):
    files = {
        "system.slice__site.service__memory_max": "max\n",
        "system.slice__memory_max": f"{300 * MB}\n",
        "other__memory_max": f"{100 * MB}\n",  # limits other processes
    }
    assert limit(tmp_path, "0::/system.slice/site.service\n", **files) == 300 * MB


def test_version_1_container(tmp_path: Path):
    groups = "4:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc\n"
    write(tmp_path / "root/memory/memory.limit_in_bytes", "9223372036854771712\n")
    assert limit(tmp_path, groups) == MACHINE
    write(tmp_path / "root/memory/docker/abc/memory.limit_in_bytes", f"{200 * MB}\n")
    write(tmp_path / "root/cpu/docker/abc/memory.limit_in_bytes", f"{100 * MB}\n")
    assert limit(tmp_path, groups) == 200 * MB


@pytest.mark.parametrize(("text", "gigabytes"), [("0.27", 0.27), ("5e-1", 0.5)])
def test_environment_variable_limits_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, gigabytes: float
):
    monkeypatch.setenv(VARIABLE, text)
    assert memory_bytes(tmp_path / "nothing", tmp_path / "nowhere") == int(gigabytes * 1e9)
    assert limit(tmp_path, memory_max=f"{100 * MB}\n") == 100 * MB  # the container would be killed


@pytest.mark.parametrize("text", ["0", "nan", "2.7 GB"])
def test_rejects_invalid_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str):
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(ValueError, match=f"{VARIABLE}.*{text}"):
        memory_bytes(tmp_path / "nothing", tmp_path / "nowhere")
