"""What a server removes when it starts and when it ends, so that it leaves nothing behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pretrained import sealed_folder
from pretrained.hub import downloads


@asynccontextmanager
async def lifespan(_: object) -> AsyncIterator[None]:
    """Remove what killed servers left, then, at the end, what this one has and still downloads."""
    sealed_folder.remove_stale()
    try:
        yield
    finally:
        downloads.cancel_all()
        sealed_folder.remove_own()
