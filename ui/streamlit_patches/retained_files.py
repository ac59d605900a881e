"""Keep files created on a click until the browser has had time to download them.

Streamlit deletes files that no page shows after two more page runs by any visitor. No page shows
these files, so on a busy site they'd be gone before the browser requests them.
"""

from __future__ import annotations

from typing import Any

from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage

from serving.limits import RETAINED_FILE_BYTES


class RetainedFiles(MemoryMediaFileStorage):
    """In-memory file storage that delays deletions until newer ones exceed the size limit."""

    def __init__(self, media_endpoint: str) -> None:
        super().__init__(media_endpoint)
        self._deleted: dict[str, int] = {}  # file ID -> bytes, oldest deletion first

    def load_and_get_id(self, *args: Any, **kwargs: Any) -> str:
        """Store a file, and cancel its pending deletion if there is one."""
        file_id = super().load_and_get_id(*args, **kwargs)
        self._deleted.pop(file_id, None)
        return file_id

    def delete_file(self, file_id: str) -> None:
        """Mark a file for deletion, and delete the oldest files beyond the size limit."""
        self._deleted[file_id] = len(self.get_file(file_id).content)
        while sum(self._deleted.values()) > RETAINED_FILE_BYTES:
            oldest = next(iter(self._deleted))
            super().delete_file(oldest)
            del self._deleted[oldest]
