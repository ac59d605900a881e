"""Test core detection: from the system, from Linux control groups, or as configured."""

import os
from pathlib import Path

import pytest

from serving.cores import VARIABLE, cores


@pytest.fixture(autouse=True)
def _no_configured_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(32)))


def detected_cores(folder: Path, groups: str = "0::/\n", **files: str) -> int:
    """Return the detected cores, given these control group files ("/" written as "__")."""
    (folder / "cgroup").write_text(groups)
    for name, text in files.items():
        path = folder / "root" / name.replace("__", "/").replace("cpu_", "cpu.")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return cores(folder / "cgroup", folder / "root")


@pytest.mark.parametrize(
    ("text", "n_cores"),
    [
        ("150000 100000\n", 2),
        ("10000 100000\n", 1),
        ("9900000 100000\n", 32),  # more than available
        ("max 100000\n", 32),
        ("200000 0\n", 32),
    ],
)
def test_version_2_container(tmp_path: Path, text: str, n_cores: int):
    assert detected_cores(tmp_path, cpu_max=text) == n_cores


def test_smallest_share_of_all_enclosing_groups(tmp_path: Path):
    files = {"a__b__cpu_max": "max 100000\n", "a__cpu_max": "300000 100000\n", "c__cpu_max": "1 1"}
    assert detected_cores(tmp_path, "0::/a/b\n", **files) == 3


def test_version_1_container(tmp_path: Path):
    files = {
        "cpu__docker__abc__cpu_cfs_quota_us": "400000\n",
        "cpu__docker__abc__cpu_cfs_period_us": "100000\n",
        "cpu__cpu_cfs_quota_us": "-1\n",
        "cpu__cpu_cfs_period_us": "100000\n",
    }
    assert detected_cores(tmp_path, "4:cpu,cpuacct:/docker/abc\n", **files) == 4


@pytest.mark.parametrize(("text", "n_cores"), [("3", 3), ("64", 32), ("x", 32)])
def test_environment_variable_limits_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, n_cores: int
):
    monkeypatch.setenv(VARIABLE, text)
    assert detected_cores(tmp_path) == n_cores
