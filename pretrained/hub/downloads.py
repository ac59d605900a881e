"""Downloads from the hub: only when somebody asks, in a process of their own, stoppable.

`start_download`, `prefetch` and `hub_reachable` are the only calls of this package that use the
network. A download runs as `python -m pretrained.hub.fetch`, so stopping it is killing a process,
and a hub that hangs never holds up a page.
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
from pretrained.specs import SPECS, spec_of

State = Literal["running", "done", "failed", "cancelled"]

# Lines of the child that carry this prefix are messages; anything else is a library talking.
MESSAGE = "attention-lab: "
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}")


_started: weakref.WeakSet[Download] = weakref.WeakSet()


class Download:
    """A running or finished download. Safe to read from any thread.

    hub_id, revision: what is fetched. error: a sentence once the state is "failed", else "".
    path: the folder with the files once the state is "done", else None.
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
        self._before = 0  # bytes that lay in the cache when the download began
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    @property
    def state(self) -> State:
        """The state of the download: "running", "done", "failed" or "cancelled"."""
        return self._state

    def progress(self) -> tuple[int, int]:
        """Bytes that have arrived and bytes in all; the latter is 0 while it is not yet known."""
        total = self._total
        if self._state == "done":
            return total, total
        if self._blobs is None:
            return 0, total
        return min(max(folder_bytes(self._blobs) - self._before, 0), total), total

    def cancel(self) -> None:
        """Stop within a second and remove what has arrived in part. No effect once finished."""
        with self._lock:
            if self._state != "running":
                return
            self._state = "cancelled"
        self._stop()

    def wait(self, timeout: float | None = None) -> State:
        """Wait until the download is over, at most `timeout` seconds; the state then."""
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
            # Plain HTTP: its partial file grows as bytes arrive, which is what progress() reads.
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
                self.error = self.error or f"The download ended unexpectedly ({last or code})."
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
        # Listed before the kill: these are the child's, it holds the cache's lock on them.
        partial = list(self._blobs.glob("*.incomplete")) if self._blobs else []
        process.terminate()
        try:
            process.wait(0.5)
        except subprocess.TimeoutExpired:
            process.kill()
            # a process that the system holds in a read dies when that ends; nobody waits for it
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.4)
        for file in partial:
            file.unlink(missing_ok=True)


def start_download(hub_id: str, revision: str = "main", *, into: Path | None = None) -> Download:
    """Begin to download a model and return at once.

    into: a Hugging Face cache folder, by default the user's, where `pretrained.find` looks.
    Only configuration, tokenizer and safetensors files are fetched, no pickles and no code.
    Raises ValueError for a malformed hub id or revision and PermissionError when downloads are
    switched off (ATTENTION_LAB_DOWNLOADS=off).
    """
    if not downloads_allowed():
        raise PermissionError("Downloads are switched off on this site.")
    return _begin(hub_id, revision, into)


def cancel_all() -> None:
    """Cancel the downloads of this process; their own processes would outlive it."""
    for download in list(_started):
        download.cancel()


def prefetch() -> list[Download]:
    """Begin to download the models that ATTENTION_LAB_PREFETCH names (comma separated)."""
    return fetch_named(settings.PREFETCH.read())


def fetch_named(names: Iterable[str], *, into: Path | None = None) -> list[Download]:
    """Begin to download these models: names of the catalogue or hub ids.

    into: as of `start_download`. Models that are already on this machine are left out. What the
    operator asks for here is fetched even where visitors may not download. Never raises: an unknown
    name becomes a failed download with its error.
    """
    downloads = []
    for name in dict.fromkeys(filter(None, names)):
        spec = spec_of(name)
        try:
            if find(name) is not None:
                continue
            if spec is None and "/" not in name:
                known = ", ".join(s.name for s in SPECS)
                raise ValueError(f"No model named {name!r}; known are {known}, or a hub id.")
            hub_id, revision = (spec.hub_id, spec.revision) if spec else (name, "main")
            downloads.append(_begin(hub_id, revision, into))
        except (ValueError, OSError) as error:
            failed = Download(name, "main")
            failed.error, failed._state = str(error), "failed"
            downloads.append(failed)
    return downloads


def downloads_allowed() -> bool:
    """Whether visitors may start downloads: yes, unless ATTENTION_LAB_DOWNLOADS is off.

    Raises ValueError for a value that is neither on nor off.
    """
    return settings.DOWNLOADS.read()


def hub_reachable(timeout: float = 3.0) -> bool:
    """Whether the hub answers, known within `timeout` seconds even if name resolution hangs."""
    answers: list[bool] = []
    probe = threading.Thread(target=lambda: answers.append(_probe(timeout)), daemon=True)
    probe.start()
    probe.join(timeout)
    return bool(answers and answers[0])


def endpoint() -> str:
    """The hub's address: HF_ENDPOINT, or the public one."""
    return settings.HUB_ENDPOINT.read()


def folder_bytes(folder: Path) -> int:
    """Bytes of the files directly in a folder; 0 when there is none."""
    return sum(_sizes(folder.glob("*"))) if folder.is_dir() else 0


def _begin(hub_id: str, revision: str, into: Path | None) -> Download:
    check_hub_id(hub_id)
    if not _REVISION.fullmatch(revision) or ".." in revision:
        raise ValueError(f"{revision!r} is no revision.")
    download = Download(hub_id, revision)
    download._start(into or hub_cache())
    return download


def _probe(timeout: float) -> bool:
    """Any answer counts, also a refusal; proxies of the environment are used."""
    try:
        request = urllib.request.Request(endpoint(), method="HEAD")
        with urllib.request.urlopen(request, timeout=timeout):
            return True
    except urllib.error.HTTPError:
        return True
    except (OSError, ValueError):  # no route, no name, refused, timed out, or no such address
        return False


def _sizes(files: Iterable[Path]) -> Iterable[int]:
    for file in files:
        with suppress(OSError):  # a partial file is renamed when it is complete
            yield file.stat().st_size
