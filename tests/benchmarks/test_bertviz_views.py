"""Where BertViz's libraries come from; no browser is started and no registry is asked."""

import hashlib
import io
import subprocess
import tarfile

import pytest

from benchmarks import bertviz_views
from benchmarks.bertviz_views import LIBRARIES, libraries


@pytest.fixture
def registry(monkeypatch):
    """An npm whose packages hold these bytes."""
    contents = {name: b"of " + package.encode() for package, name, _ in LIBRARIES.values()}

    def pack(command, cwd, **_):
        for package in command[3:]:
            name = next(file for known, file, _ in LIBRARIES.values() if known == package)
            with tarfile.open(cwd / f"{package.replace('@', '-')}.tgz", "w:gz") as archive:
                member = tarfile.TarInfo(name)
                member.size = len(contents[name])
                archive.addfile(member, io.BytesIO(contents[name]))
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(bertviz_views.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(bertviz_views.subprocess, "run", pack)
    return contents


def test_libraries_are_checked_against_their_checksums(registry, monkeypatch, tmp_path):
    with pytest.raises(RuntimeError, match=r"package/require\.js of requirejs@2\.3\.6 has another"):
        libraries(tmp_path)
    known = {
        address: (package, name, hashlib.sha256(registry[name]).hexdigest())
        for address, (package, name, _) in LIBRARIES.items()
    }
    monkeypatch.setattr(bertviz_views, "LIBRARIES", known)
    files = libraries(tmp_path)
    assert {address: file.read_bytes() for address, file in files.items()} == {
        address: registry[name] for address, (_, name, _) in known.items()
    }


def test_without_npm_the_message_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(bertviz_views.shutil, "which", lambda name: None)
    with pytest.raises(RuntimeError, match="npm is not installed"):
        libraries(tmp_path)
