"""A file that was made on a click stays until the browser has had time to fetch it.

No page shows such a file, and Streamlit deletes what no page shows when the second run after it
ends, of any visitor: on a busy site before the browser has asked for the file.
"""

from __future__ import annotations

from typing import Any

from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage

from serving.limits import KEPT_FILE_BYTES


class KeptFiles(MemoryMediaFileStorage):
    """Files in memory. What is to be deleted goes when newer deletions need its place."""

    def __init__(self, media_endpoint: str) -> None:
        super().__init__(media_endpoint)
        self._ended: dict[str, int] = {}  # sizes, the oldest deletion first

    def load_and_get_id(self, *args: Any, **kwargs: Any) -> str:
        """Store a file; one that was to be deleted stays."""
        file_id = super().load_and_get_id(*args, **kwargs)
        self._ended.pop(file_id, None)
        return file_id

    def delete_file(self, file_id: str) -> None:
        """Keep the file, and delete the oldest of those that are too many."""
        self._ended[file_id] = len(self.get_file(file_id).content)
        while sum(self._ended.values()) > KEPT_FILE_BYTES:
            oldest = next(iter(self._ended))
            super().delete_file(oldest)
            del self._ended[oldest]
