"""Files that are made on a click, and how long they stay."""

import pytest
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.media_file_storage import MediaFileKind, MediaFileStorageError

from ui.streamlit_patches import retained_files
from ui.streamlit_patches.retained_files import RetainedFiles


def stored(files: RetainedFiles, content: bytes) -> str:
    return files.load_and_get_id(content, "application/zip", MediaFileKind.DOWNLOADABLE, "a.zip")


def test_a_file_made_on_a_click_outlives_the_runs_of_other_visitors():
    files = RetainedFiles("/media")
    manager = MediaFileManager(files)
    made = manager.add_deferred(lambda: b"an archive", "application/zip", "0.1", "a.zip")
    address = manager.execute_deferred(made)
    for _ in range(5):  # each run of any visitor ends with this
        manager.remove_orphaned_files()
    assert files.get_file(address.rpartition("/")[2]).content == b"an archive"


def test_the_oldest_files_go_when_there_are_too_many_bytes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(retained_files, "RETAINED_FILE_BYTES", 10)
    files = RetainedFiles("/media")
    old, young, shown = (stored(files, content) for content in (b"1" * 4, b"2" * 6, b"3" * 7))
    files.delete_file(old)
    files.delete_file(young)
    assert files.get_file(old).content_size + files.get_file(young).content_size == 10
    # asked for again before it went: it is no longer among those that may go
    assert stored(files, b"2" * 6) == young
    files.delete_file(shown)
    with pytest.raises(MediaFileStorageError, match=old):
        files.get_file(old)
    assert files.get_file(young).content_size == 6
    assert files.get_file(shown).content_size == 7


def test_the_name_of_a_file_cannot_be_guessed():
    """Whoever knows it may fetch the file (`SECURITY.md`), so it has to be long and without order.

    A file that is made on a click first has a random name, then one that follows from its bytes.
    """
    files = RetainedFiles("/media")
    manager = MediaFileManager(files)
    asked = [
        manager.add_deferred(lambda: b"an archive", "application/zip", f"0.{n}", "a.zip")
        for n in range(50)
    ]
    assert len({name[:8] for name in asked}) == len({name[-8:] for name in asked}) == 50
    assert {len(name) for name in asked} == {32}
    made = [stored(files, bytes([n])) for n in range(50)]
    assert len({name[:8] for name in made}) == 50
    assert all(len(name.partition(".")[0]) >= 32 for name in made)
    with pytest.raises(MediaFileStorageError):
        files.get_file(asked[0])  # nothing is made before it is asked for
