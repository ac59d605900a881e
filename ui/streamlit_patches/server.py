"""Streamlit settings that this site needs and Streamlit has no option for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from streamlit import net_util
from streamlit.runtime import memory_media_file_storage, runtime_util

from serving import cleanup
from serving.limits import MAX_CONCURRENT_FILES, MAX_SENT_BYTES
from ui.streamlit_patches import widget_values
from ui.streamlit_patches.retained_files import RetainedFiles


def prepare() -> None:
    """Patch Streamlit. Call this before the site starts."""
    # Streamlit looks this class up when the site starts
    memory_media_file_storage.MemoryMediaFileStorage = RetainedFiles  # type: ignore[misc]
    # on a cross-origin request, Streamlit would look up its external IP online and block everyone
    net_util.get_external_ip = lambda: None
    # `server.maxMessageSize` already applies to incoming messages; outgoing ones are larger
    runtime_util._max_message_size_bytes = MAX_SENT_BYTES
    widget_values.check_value_types()


@asynccontextmanager
async def lifespan(app: object) -> AsyncIterator[None]:
    """The site's lifespan: clean up at the end, and give file downloads enough threads.

    Streamlit creates download files in the event loop's thread pool. By default that has four more
    threads than there are cores, so a table would have to wait for other visitors' pictures.
    """
    threads = ThreadPoolExecutor(MAX_CONCURRENT_FILES, "files")
    asyncio.get_running_loop().set_default_executor(threads)
    async with cleanup.lifespan(app):
        yield
