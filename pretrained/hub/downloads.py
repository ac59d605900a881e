"""Downloads from the Hugging Face Hub, each in a separate process that can be stopped.

Only `start_download`, `prefetch` and `hub_reachable` use the network. A download runs as
`python -m pretrained.hub.fetch`, so we can stop it by killing the process, and a slow Hub never
blocks a page.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from pretrained import settings
from pretrained.names import check_hub_id
from pretrained.sources import find, hub_cache
from pretrained.specs import SPECS, find_spec

State = Literal["running", "done", "failed", "cancelled"]

# Output lines of the child process with this prefix are messages; others come from libraries.
MESSAGE = "attention-lab: "
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}")


_started: weakref.WeakSet[Download] = weakref.WeakSet()


class Download:
    """A running or finished download; any thread may read it.

    hub_id, revision: the model and its version. error: a message if the state is "failed",
    otherwise empty. path: the folder with the files if the state is "done", otherwise None.
    """

    def __init__(self, hub_id: str, revision: str) -> None:
        self.hub_id = hub_id
        self.revision = revision
        self.error = ""
        self.path: Path | None = None
        self._state: State = "running"
        self._lock = threading.Lock()
        self._total = 0
        self._blobs: Path | None = None
        self._before = 0  # bytes already in the cache when the download started
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    @property
    def state(self) -> State:
        """The state of the download: "running", "done", "failed" or "cancelled"."""
        return self._state

    def progress(self) -> tuple[int, int]:
        """Bytes downloaded and total bytes; the total is 0 until it's known."""
        total = self._total
        if self._state == "done":
            return total, total
        if self._blobs is None:
            return 0, total
        return min(max(folder_bytes(self._blobs) - self._before, 0), total), total

    def cancel(self) -> None:
        """Stop within a second and delete partial files; no effect once finished."""
        with self._lock:
            if self._state != "running":
                return
            self._state = "cancelled"
        self._stop()

    def wait(self, timeout: float | None = None) -> State:
        """Wait at most `timeout` seconds for the download to finish, and return its state."""
        if self._reader is not None:
            self._reader.join(timeout)
        return self._state

    def _start(self, cache: Path) -> None:
        root = str(Path(__file__).resolve().parents[2])
        search = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
        environment = {
            **os.environ,
            "PYTHONPATH": search,
            "PYTHONUNBUFFERED": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            # With plain HTTP the partial file grows during the download, so progress() can read it.
            "HF_HUB_DISABLE_XET": "1",
        }
        command = [
            sys.executable,
            "-m",
            "pretrained.hub.fetch",
            self.hub_id,
            self.revision,
            str(cache),
        ]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=environment,
        )
        _started.add(self)
        self._reader = threading.Thread(target=self._read, name="download", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        process = self._process
        if process is None or process.stdout is None:
            return
        last = ""
        for line in process.stdout:
            if line.startswith(MESSAGE):
                with suppress(ValueError):
                    self._message(json.loads(line.removeprefix(MESSAGE)))
            elif line.strip():
                last = line.strip()
        code = process.wait()
        with self._lock:
            if self._state == "running":
                self.error = self.error or (
                    f"The download ended unexpectedly ({last or code}). Try it again."
                )
                self._state = "failed"

    def _message(self, message: dict[str, Any]) -> None:
        with self._lock:
            if self._state != "running":
                return
            if "total" in message:
                self._before = int(message["before"])
                self._blobs = Path(message["blobs"])
                self._total = int(message["total"])
            elif "error" in message:
                self.error = str(message["error"])
                self._state = "failed"
            elif "path" in message:
                self.path = Path(message["path"])
                self._state = "done"

    def _stop(self) -> None:
        process = self._process
        if process is None:
            return
        # Listed while the child still holds the cache's lock, so these files are its own.
        partial = list(self._blobs.glob("*.incomplete")) if self._blobs else []
        process.terminate()
        try:
            process.wait(0.5)
        except subprocess.TimeoutExpired:
            process.kill()
            # a process that is blocked in a system call ends later; don't wait for it
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.4)
        for file in partial:
            file.unlink(missing_ok=True)


def start_download(hub_id: str, revision: str = "main", *, into: Path | None = None) -> Download:
    """Start downloading a model and return immediately.

    into: a Hugging Face cache folder, by default the user's, which `pretrained.find` searches.
    Only fetches configuration, tokenizer and safetensors files, never pickles or code.
    Raises ValueError for a malformed Hub id or revision, and PermissionError if downloads are off
    (ATTENTION_LAB_DOWNLOADS=off).
    """
    if not downloads_allowed():
        raise PermissionError("Downloads are turned off on this site.")
    return _begin(hub_id, revision, into)


def cancel_all() -> None:
    """Cancel all downloads of this process, because their processes would outlive it."""
    for download in list(_started):
        download.cancel()


def prefetch() -> list[Download]:
    """Start downloading the models in ATTENTION_LAB_PREFETCH (comma-separated)."""
    return download_models(settings.PREFETCH.read())


def download_models(names: Iterable[str], *, into: Path | None = None) -> list[Download]:
    """Start downloading models by catalog name or Hub id, except those already on this machine.

    into: as in `start_download`. Works even if downloads are off for visitors, because the operator
    chose these models. Never raises: an unknown name becomes a failed download with an error.
    """
    downloads = []
    for name in dict.fromkeys(filter(None, names)):
        spec = find_spec(name)
        try:
            if find(name) is not None:
                continue
            if spec is None and "/" not in name:
                known = ", ".join(s.name for s in SPECS)
                raise ValueError(
                    f"{name!r} isn't a known model. Use one of {known}, or a Hub id such as "
                    "org/name."
                )
            hub_id, revision = (spec.hub_id, spec.revision) if spec else (name, "main")
            downloads.append(_begin(hub_id, revision, into))
        except (ValueError, OSError) as error:
            failed = Download(name, "main")
            failed.error, failed._state = str(error), "failed"
            downloads.append(failed)
    return downloads


def downloads_allowed() -> bool:
    """Whether visitors may start downloads, which ATTENTION_LAB_DOWNLOADS=off forbids.

    Raises ValueError for an invalid value of the variable.
    """
    return settings.DOWNLOADS.read()


def hub_reachable(timeout: float = 3.0) -> bool:
    """Whether the Hub responds within `timeout` seconds, even if name resolution hangs."""
    answers: list[bool] = []
    probe = threading.Thread(target=lambda: answers.append(_probe(timeout)), daemon=True)
    probe.start()
    probe.join(timeout)
    return bool(answers and answers[0])


def endpoint() -> str:
    """The Hub's URL: HF_ENDPOINT, or the public Hub."""
    return settings.HUB_ENDPOINT.read()


def folder_bytes(folder: Path) -> int:
    """Bytes of the files directly in a folder; 0 if the folder doesn't exist."""
    return sum(_sizes(folder.glob("*"))) if folder.is_dir() else 0


def _begin(hub_id: str, revision: str, into: Path | None) -> Download:
    check_hub_id(hub_id)
    if not _REVISION.fullmatch(revision) or ".." in revision:
        raise ValueError(f"{revision!r} isn't a valid revision; use a branch, tag or commit.")
    download = Download(hub_id, revision)
    download._start(into or hub_cache())
    return download


def _probe(timeout: float) -> bool:
    """Whether the Hub sends any response, even an error; uses the environment's proxies."""
    try:
        request = urllib.request.Request(endpoint(), method="HEAD")
        with urllib.request.urlopen(request, timeout=timeout):
            return True
    except urllib.error.HTTPError:
        return True
    except (OSError, ValueError):  # unreachable, timed out, or an invalid URL
        return False


def _sizes(files: Iterable[Path]) -> Iterable[int]:
    for file in files:
        with suppress(OSError):  # a partial file is renamed once it's complete
            yield file.stat().st_size
