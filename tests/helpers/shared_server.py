"""One server for all processes of a run of the tests.

To start a server, to load its models and to open every page for the first time costs half a minute
of a core: far more than what the processes lose by waiting for each other.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from benchmarks.browser import Server, Site


@contextmanager
def shared_server(folder: Path) -> Iterator[Site]:
    """The server of all processes that name the same folder: the first to come starts it.

    That process also ends it, once all others have left.
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
