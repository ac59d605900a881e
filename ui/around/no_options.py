"""What this site needs of Streamlit, and Streamlit has no option for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from streamlit import net_util
from streamlit.runtime import memory_media_file_storage, runtime_util

from serving import cleanup
from serving.limits import FILES_AT_ONCE, MAX_SENT_BYTES
from ui.around import widget_kinds
from ui.around.kept_files import KeptFiles


def prepare() -> None:
    """Before the site starts."""
    # where files are kept: Streamlit looks for this name when the site starts
    memory_media_file_storage.MemoryMediaFileStorage = KeptFiles  # type: ignore[misc]
    # where a page of another site knocks, it would ask the internet for this, and all visitors wait
    net_util.get_external_ip = lambda: None
    # `server.maxMessageSize` is for what comes in and was read before; what goes out is larger
    runtime_util._max_message_size_bytes = MAX_SENT_BYTES
    widget_kinds.check_kinds()


@asynccontextmanager
async def life(app: object) -> AsyncIterator[None]:
    """The site's lifespan: leave nothing behind, and make files in threads next to each other.

    Streamlit makes files, after a click, in the threads of the event loop, by default four more
    than there are cores: a table would wait there for the pictures of other visitors.
    """
    threads = ThreadPoolExecutor(FILES_AT_ONCE, "files")
    asyncio.get_running_loop().set_default_executor(threads)
    async with cleanup.lifespan(app):
        yield
