"""Share one server between all processes of a test run.

Starting a server, loading its models and opening every page for the first time takes half a minute
of CPU time, far more than processes lose by waiting for each other.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from benchmarks.browser import Server, Site


@contextmanager
def shared_server(folder: Path) -> Iterator[Site]:
    """Yield the server for all processes with the same folder. The first process starts it.

    That process also stops it, after all others have finished.
    """
    server = None
    address, door = folder / "address.txt", FileLock(folder / "door.lock")
    with (folder / "users.lock").open("w") as users:
        with door:
            if not address.exists():
                server = Server(folder / "server_log.txt")
                server.wait_until_it_listens()
                address.write_text(server.url, encoding="utf-8")
            fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield Site(address.read_text(encoding="utf-8"))
        finally:
            fcntl.flock(users, fcntl.LOCK_UN)
            if server is not None:
                with door:
                    fcntl.flock(users, fcntl.LOCK_EX)  # waits for all others
                    address.unlink()
                    server.stop()
