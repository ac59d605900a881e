"""Cached folders are complete, unmodified, and built once; otherwise they are rebuilt."""

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
    """Build a folder with two files, and count the calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, folder: Path) -> None:
        self.calls += 1
        (folder / "small.json").write_text("{}")
        (folder / "big.bin").write_bytes(bytes(range(256)) * 40)


@pytest.fixture
def build() -> Builder:
    return Builder()


def test_folder_is_built_once(cache: Path, build: Builder) -> None:
    first = sealed_folder.sealed_folder("key", build)
    assert first == cache / "key"
    assert sealed_folder.sealed_folder("key", build) == first
    assert build.calls == 1
    names = {file.name for file in first.iterdir()}
    assert names == {"big.bin", "manifest.json", "small.json"}
    assert {file.stat().st_mode & 0o777 for file in first.iterdir()} == {0o644}


def test_concurrent_requests_build_once(cache: Path, build: Builder) -> None:
    def build_slowly(folder: Path) -> None:
        build(folder)
        started.set()
        assert can_continue.wait(60)

    started, can_continue = threading.Event(), threading.Event()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(sealed_folder.sealed_folder, "key", build_slowly)
        assert started.wait(60)
        second = pool.submit(sealed_folder.sealed_folder, "key", build)
        can_continue.set()
        assert first.result() == second.result() == cache / "key"
    assert build.calls == 1


def flip_a_bit(folder: Path) -> None:
    file = folder / "big.bin"
    stat = file.stat()
    raw = bytearray(file.read_bytes())
    raw[1000] ^= 4
    file.write_bytes(raw)
    # the size doesn't change, and the modification time barely does
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))


def truncate(folder: Path) -> None:
    (folder / "big.bin").write_bytes(b"half")


def remove(folder: Path) -> None:
    (folder / "small.json").unlink()


def empty_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"files": {}}')


def invalid_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"files": {"big.bin": 3}}')


@pytest.mark.parametrize("damage", [flip_a_bit, truncate, remove, empty_manifest, invalid_manifest])
def test_damaged_folder_is_rebuilt(cache: Path, build: Builder, damage) -> None:
    folder = sealed_folder.sealed_folder("key", build)
    damage(folder)
    assert not sealed_folder.is_sound(folder)
    assert sealed_folder.sealed_folder("key", build) == folder
    assert build.calls == 2
    assert sealed_folder.is_sound(folder)
    assert not list(cache.glob(".key.*"))


def test_killed_build_is_not_used(cache: Path, build: Builder, root: Path) -> None:
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
    # this doesn't wait for the lock of the killed process
    folder = sealed_folder.sealed_folder("key", build)
    assert sealed_folder.is_sound(folder)
    assert sorted(file.name for file in cache.iterdir()) == ["key", "key.lock"]


@pytest.mark.parametrize("kind", ["below a file", "read-only"])
def test_unwritable_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Builder, kind: str
) -> None:
    # Even root can't create folders below a file or in /proc.
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


# Limit the file size, which acts like a full disk even for root.
FULL = """
import resource, sys, tempfile
from pathlib import Path
from pretrained import sealed_folder

root = sealed_folder.cache_root()
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]

def full(n_bytes):
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))

def build(folder):
    if "space elsewhere" in sys.argv and folder.parent != root:
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


@pytest.mark.parametrize("free_space", ["space elsewhere", "no space"])
def test_full_disk(cache: Path, tmp_path: Path, root: Path, free_space: str) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    result = subprocess.run(
        [sys.executable, "-c", FULL, free_space],
        cwd=root,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=True,
    )
    message, in_cache, in_temporary = result.stdout.splitlines()
    assert in_cache == "key.lock"
    if free_space == "no space":
        assert message == "File too large"
        assert in_temporary == ""  # even while the process is running
    else:
        assert message == "built True True"
        assert in_temporary.startswith("attention-lab-")
    assert list(temporary.iterdir()) == []  # after the process has ended


# Builds a folder in a temporary location, prints its name, and waits until stdin is closed.
BUILD_AND_WAIT = """
import sys, threading
from pretrained import sealed_folder

def build(folder):
    (folder / "big.bin").write_bytes(b"half")
    if "builds" in sys.argv:
        print(folder.name, flush=True)
        sys.stdin.read()

print(sealed_folder.sealed_folder("key", build).name, flush=True)
sys.stdin.read()
if "remove_own" in sys.argv:
    sealed_folder.remove_own()
    threading.Event().wait()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty folder for temporary files, and a cache that can't be written."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("ATTENTION_LAB_CACHE", "/proc/attention-lab")
    monkeypatch.setattr(sealed_folder, "_temporary", {})
    return folder


@pytest.mark.parametrize("moment", ["builds", "has built"])
def test_only_folders_of_dead_processes_are_stale(temporary: Path, root: Path, moment: str) -> None:
    others = ["attention-lab-notes", "attention-lab-0123456789abcdeg", "tmp0123456789abcdef"]
    for name in others:
        (temporary / name).mkdir()
    command = [sys.executable, "-c", BUILD_AND_WAIT, moment]
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


def test_remove_own_deletes_the_folders_of_the_process(temporary: Path, root: Path) -> None:
    command = [sys.executable, "-c", BUILD_AND_WAIT, "remove_own"]
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        process.stdin.close()
        wait_until(lambda: list(temporary.iterdir()) == [])
        process.kill()  # the folders are gone before `atexit` runs


@pytest.mark.parametrize("location", ["the cache", "a temporary folder"])
def test_build_that_finishes_after_remove_own_leaves_no_files(
    cache: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch, location: str
) -> None:
    if location == "the cache":
        monkeypatch.setenv("ATTENTION_LAB_CACHE", str(cache))
    calls = []

    def build(folder: Path) -> None:
        calls.append(folder)
        (folder / "big.bin").write_bytes(b"half")
        sealed_folder.remove_own()
        (folder / "small.json").write_text("{}")

    with pytest.raises(OSError):  # noqa: PT011 - any error about the missing folder
        sealed_folder.sealed_folder("key", build)
    assert len(calls) == 1
    assert [file.name for file in cache.glob("*")] == ["key.lock"] * (location == "the cache")
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("is_held", [True, False])
def test_partial_folder_is_stale_unless_it_is_locked(
    cache: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch, is_held: bool
) -> None:
    monkeypatch.setenv("ATTENTION_LAB_CACHE", str(cache))
    key = "smollm2-135m-instruct-v1-0123456789abcdef"
    partial, other = cache / f".{key}.abc_123x", cache / ".config.abc"
    for folder in (partial, other):
        folder.mkdir(parents=True)
    with FileLock(cache / f"{key}.lock") if is_held else nullcontext():
        sealed_folder.remove_stale()
        assert partial.exists() == is_held
    assert other.exists()
