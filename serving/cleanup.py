"""Removal of temporary files and downloads when a server starts and ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pretrained import sealed_folder
from pretrained.hub import downloads


@asynccontextmanager
async def lifespan(_: object) -> AsyncIterator[None]:
    """Remove leftovers of killed servers; at the end, stop downloads and remove our own files."""
    sealed_folder.remove_stale()
    try:
        yield
    finally:
        downloads.cancel_all()
        sealed_folder.remove_own()
