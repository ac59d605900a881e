"""Folders in the cache are complete, unchanged and built by one process, or built again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import pytest
from filelock import FileLock

from pretrained import sealed_folder
from tests.helpers.waiting import wait_until


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("ATTENTION_LAB_CACHE", str(folder))
    return folder


class Builder:
    """Builds a folder with two files and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, folder: Path) -> None:
        self.calls += 1
        (folder / "small.json").write_text("{}")
        (folder / "big.bin").write_bytes(bytes(range(256)) * 40)


@pytest.fixture
def build() -> Builder:
    return Builder()


def test_built_once(cache: Path, build: Builder) -> None:
    first = sealed_folder.sealed_folder("key", build)
    assert first == cache / "key"
    assert sealed_folder.sealed_folder("key", build) == first
    assert build.calls == 1
    names = {file.name for file in first.iterdir()}
    assert names == {"big.bin", "manifest.json", "small.json"}
    assert {file.stat().st_mode & 0o777 for file in first.iterdir()} == {0o644}


def test_two_that_need_it_at_once_build_it_once(cache: Path, build: Builder) -> None:
    def slow(folder: Path) -> None:
        build(folder)
        inside.set()
        assert go_on.wait(60)

    inside, go_on = threading.Event(), threading.Event()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(sealed_folder.sealed_folder, "key", slow)
        assert inside.wait(60)
        second = pool.submit(sealed_folder.sealed_folder, "key", build)
        go_on.set()
        assert first.result() == second.result() == cache / "key"
    assert build.calls == 1


def flip_a_bit(folder: Path) -> None:
    file = folder / "big.bin"
    stat = file.stat()
    raw = bytearray(file.read_bytes())
    raw[1000] ^= 4
    file.write_bytes(raw)
    # the size is the same; another process may well see the same time
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))


def cut(folder: Path) -> None:
    (folder / "big.bin").write_bytes(b"half")


def remove(folder: Path) -> None:
    (folder / "small.json").unlink()


def empty_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"files": {}}')


def odd_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"files": {"big.bin": 3}}')


@pytest.mark.parametrize("damage", [flip_a_bit, cut, remove, empty_manifest, odd_manifest])
def test_damage_is_noticed_and_repaired(cache: Path, build: Builder, damage) -> None:
    folder = sealed_folder.sealed_folder("key", build)
    damage(folder)
    assert not sealed_folder.is_sound(folder)
    assert sealed_folder.sealed_folder("key", build) == folder
    assert build.calls == 2
    assert sealed_folder.is_sound(folder)
    assert not list(cache.glob(".key.*"))


def test_a_process_that_is_killed_while_it_builds_leaves_nothing_that_counts(
    cache: Path, build: Builder, root: Path
) -> None:
    code = (
        "import sys\n"
        "from pretrained.sealed_folder import sealed_folder\n"
        "def build(folder):\n"
        "    (folder / 'big.bin').write_bytes(b'half')\n"
        "    print('half', flush=True)\n"
        "    sys.stdin.read()\n"
        "sealed_folder('key', build)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "half\n"
        process.kill()
    assert [file.read_bytes() for file in cache.rglob("big.bin")] == [b"half"]
    folder = sealed_folder.sealed_folder("key", build)  # does not wait for the dead one's lock
    assert sealed_folder.is_sound(folder)
    assert sorted(file.name for file in cache.iterdir()) == ["key", "key.lock"]


@pytest.mark.parametrize("kind", ["below a file", "read-only"])
def test_a_cache_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Builder, kind: str
) -> None:
    # Root may write anywhere but over a file, and where the system itself says what there is.
    obstacle = tmp_path / "obstacle"
    obstacle.write_text("")
    target = obstacle / "deeper" if kind == "below a file" else "/proc/attention-lab"
    monkeypatch.setenv("ATTENTION_LAB_CACHE", str(target))
    monkeypatch.setattr(sealed_folder, "_temporary", {})
    folder = sealed_folder.sealed_folder("key", build)
    assert sealed_folder.is_sound(folder)
    assert sealed_folder.sealed_folder("key", build) == folder
    assert build.calls == 1
    shutil.rmtree(folder)


# A file may be no longer than some bytes: what a full disk does, to root too.
FULL = """
import resource, sys, tempfile
from pathlib import Path
from pretrained import sealed_folder

root = sealed_folder.cache_root()
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]

def full(n_bytes):
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))

def build(folder):
    if "elsewhere there is room" in sys.argv and folder.parent != root:
        full(hard)
    (folder / "big.bin").write_bytes(bytes(100_000))

full(50_000)
try:
    folder = sealed_folder.sealed_folder("key", build)
    print("built", folder.parent == Path(tempfile.gettempdir()), sealed_folder.is_sound(folder))
except OSError as error:
    print(error.strerror)
print(*sorted(file.name for file in root.iterdir()))
print(*sorted(file.name for file in Path(tempfile.gettempdir()).iterdir()))
"""


@pytest.mark.parametrize("room", ["elsewhere there is room", "nowhere is room"])
def test_a_disk_that_is_really_full(cache: Path, tmp_path: Path, root: Path, room: str) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    result = subprocess.run(
        [sys.executable, "-c", FULL, room],
        cwd=root,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=True,
    )
    message, in_cache, in_temporary = result.stdout.splitlines()
    assert in_cache == "key.lock"
    if room == "nowhere is room":
        assert message == "File too large"
        assert in_temporary == ""  # also while the process goes on
    else:
        assert message == "built True True"
        assert in_temporary.startswith("attention-lab-")
    assert list(temporary.iterdir()) == []  # once the process has ended


# Builds a folder in a temporary place, prints its name, and waits for the end of its input.
HOLDS = """
import sys, threading
from pretrained import sealed_folder

def build(folder):
    (folder / "big.bin").write_bytes(b"half")
    if "builds" in sys.argv:
        print(folder.name, flush=True)
        sys.stdin.read()

print(sealed_folder.sealed_folder("key", build).name, flush=True)
sys.stdin.read()
if "told" in sys.argv:
    sealed_folder.remove_own()
    threading.Event().wait()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files, and a cache that cannot be written."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("ATTENTION_LAB_CACHE", "/proc/attention-lab")
    monkeypatch.setattr(sealed_folder, "_temporary", {})
    return folder


@pytest.mark.parametrize("moment", ["builds", "has built"])
def test_only_folders_of_processes_that_are_gone_are_stale(
    temporary: Path, root: Path, moment: str
) -> None:
    others = ["attention-lab-notes", "attention-lab-0123456789abcdeg", "tmp0123456789abcdef"]
    for name in others:
        (temporary / name).mkdir()
    command = [sys.executable, "-c", HOLDS, moment]
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        sealed_folder.remove_stale()
        assert (temporary / name / "big.bin").read_bytes() == b"half"
        process.kill()
        process.wait()
    assert (temporary / name).is_dir()
    sealed_folder.remove_stale()
    assert sorted(file.name for file in temporary.iterdir()) == sorted(others)


def test_a_process_that_is_about_to_end_removes_its_folders(temporary: Path, root: Path) -> None:
    command = [sys.executable, "-c", HOLDS, "told"]
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        process.stdin.close()
        wait_until(lambda: list(temporary.iterdir()) == [])
        process.kill()  # nothing is left for `atexit` to do


@pytest.mark.parametrize("place", ["the cache", "a temporary folder"])
def test_a_build_that_ends_too_late_leaves_nothing(
    cache: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    if place == "the cache":
        monkeypatch.setenv("ATTENTION_LAB_CACHE", str(cache))
    calls = []

    def build(folder: Path) -> None:
        calls.append(folder)
        (folder / "big.bin").write_bytes(b"half")
        sealed_folder.remove_own()
        (folder / "small.json").write_text("{}")

    with pytest.raises(OSError):  # noqa: PT011 - whichever says that the folder is gone
        sealed_folder.sealed_folder("key", build)
    assert len(calls) == 1
    assert [file.name for file in cache.glob("*")] == ["key.lock"] * (place == "the cache")
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("is_held", [True, False])
def test_a_half_filled_folder_of_the_cache_is_stale_if_nobody_fills_it(
    cache: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch, is_held: bool
) -> None:
    monkeypatch.setenv("ATTENTION_LAB_CACHE", str(cache))
    key = "smollm2-135m-instruct-v1-0123456789abcdef"
    half, other = cache / f".{key}.abc_123x", cache / ".config.abc"
    for folder in (half, other):
        folder.mkdir(parents=True)
    with FileLock(cache / f"{key}.lock") if is_held else nullcontext():
        sealed_folder.remove_stale()
        assert half.exists() == is_held
    assert other.exists()
