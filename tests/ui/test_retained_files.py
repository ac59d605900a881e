"""Test files that are created on click, and how long they're available."""

import pytest
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.media_file_storage import MediaFileKind, MediaFileStorageError

from ui.streamlit_patches import retained_files
from ui.streamlit_patches.retained_files import RetainedFiles


def store(files: RetainedFiles, content: bytes) -> str:
    return files.load_and_get_id(content, "application/zip", MediaFileKind.DOWNLOADABLE, "a.zip")


def test_file_created_on_click_outlives_other_visitors_runs():
    files = RetainedFiles("/media")
    manager = MediaFileManager(files)
    file_name = manager.add_deferred(lambda: b"an archive", "application/zip", "0.1", "a.zip")
    address = manager.execute_deferred(file_name)
    for _ in range(5):  # Streamlit calls this at the end of each visitor's run
        manager.remove_orphaned_files()
    assert files.get_file(address.rpartition("/")[2]).content == b"an archive"


def test_oldest_files_are_removed_over_the_byte_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(retained_files, "RETAINED_FILE_BYTES", 10)
    files = RetainedFiles("/media")
    old, young, recent = (store(files, content) for content in (b"1" * 4, b"2" * 6, b"3" * 7))
    files.delete_file(old)
    files.delete_file(young)
    assert files.get_file(old).content_size + files.get_file(young).content_size == 10
    # requested again before removal, so it's no longer a candidate
    assert store(files, b"2" * 6) == young
    files.delete_file(recent)
    with pytest.raises(MediaFileStorageError, match=old):
        files.get_file(old)
    assert files.get_file(young).content_size == 6
    assert files.get_file(recent).content_size == 7


def test_file_names_cannot_be_guessed():
    """Anyone with the name can fetch the file (`SECURITY.md`), so names must be long and random.

    A file that is created on click first has a random name, then one derived from its bytes.
    """
    files = RetainedFiles("/media")
    manager = MediaFileManager(files)
    deferred = [
        manager.add_deferred(lambda: b"an archive", "application/zip", f"0.{n}", "a.zip")
        for n in range(50)
    ]
    assert len({name[:8] for name in deferred}) == len({name[-8:] for name in deferred}) == 50
    assert {len(name) for name in deferred} == {32}
    file_names = [store(files, bytes([n])) for n in range(50)]
    assert len({name[:8] for name in file_names}) == 50
    assert all(len(name.partition(".")[0]) >= 32 for name in file_names)
    with pytest.raises(MediaFileStorageError):
        files.get_file(deferred[0])  # nothing is created before it's requested
