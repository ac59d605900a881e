"""The model download panel, with progress and a cancel button; one download at a time."""

from __future__ import annotations

import threading

import streamlit as st

import pretrained
from pretrained.hub import downloads
from pretrained.names import check_hub_id
from serving import models
from ui.widgets import messages


class DownloadSlot:
    """The current or most recent download, shared by all visitors."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.current: downloads.Download | None = None

    def start(self, hub_id: str, revision: str) -> str:
        """Start a download unless one is running or the hub is unreachable.

        Returns an error message, or an empty string.
        """
        # before taking the lock, so that a timeout here doesn't block other visitors
        if not downloads.hub_reachable():
            return "The server can't reach the Hugging Face Hub. Check its network connection."
        with self._lock:
            if self.current is not None and self.current.state == "running":
                return f"{self.current.hub_id} is being downloaded. Wait for it or cancel it."
            try:
                self.current = downloads.start_download(hub_id, revision)
            except (ValueError, OSError) as error:
                return str(error)
        return ""


DOWNLOAD_SLOT = DownloadSlot()


def panel() -> None:
    """Choose a model, see its size, and start, watch or cancel its download.

    If downloads are off, only a message is shown.
    """
    if not downloads.downloads_allowed():
        st.info("Downloads are turned off on this site.", icon=":material/block:")
        return
    missing = {
        entry.spec.name: entry for entry in pretrained.catalog() if entry.state == "downloadable"
    }
    by_hub_id = "Another model (enter its Hub ID)"
    choice = st.selectbox(
        "Model to download",
        [*missing, by_hub_id],
        format_func=lambda name: _label(missing[name]) if name in missing else name,
        key="models_download",
    )
    # always shown, so that nothing moves when another model is selected
    typed = st.text_input(
        "Hub ID of the model",
        placeholder="organization/model",
        max_chars=100,
        key="models_hub_id",
        disabled=choice != by_hub_id,
        help="Works with GPT-2, BERT and Llama models that have safetensors weights. The size is "
        "checked before the download starts.",
    )
    if choice == by_hub_id:
        hub_id, revision = typed.strip(), "main"
    else:
        hub_id, revision = missing[choice].spec.hub_id, missing[choice].spec.revision
    if st.button("Download", icon=":material/download:", disabled=not hub_id, key="models_start"):
        _start(hub_id, revision)
    current = DOWNLOAD_SLOT.current
    if current is not None:
        timed = current.state == "running"
        st.fragment(_watch, run_every=0.5 if timed else None)(current, timed)


def _label(entry: pretrained.CatalogEntry) -> str:
    """A model's title and download size, and a note if it's too large to load."""
    label = f"{entry.spec.title}, {entry.spec.download_bytes / 1e9:.2f} GB"
    fits = models.n_bytes(entry) <= models.MODEL_BUDGET_BYTES
    return label if fits else f"{label}, too large for this site's memory"


def _start(hub_id: str, revision: str) -> None:
    try:
        check_hub_id(hub_id)
    except ValueError as error:
        messages.show_problem(error)
        return
    with st.spinner("Contacting the Hub …"):
        problem = DOWNLOAD_SLOT.start(hub_id, revision)
    if problem:
        messages.show_problem(problem, icon=":material/cloud_off:")


def _watch(download: downloads.Download, timed: bool) -> None:
    state = download.state
    arrived, total = download.progress()
    if state == "running":
        share = min(arrived / total, 1.0) if total else 0.0
        size = f"{arrived / 1e6:.0f} of {total / 1e6:.0f} MB" if total else "checking the size"
        st.progress(share, text=f"{download.hub_id}: {size}")
        st.button("Cancel", icon=":material/stop:", key="models_cancel", on_click=download.cancel)
    elif state == "done":
        st.success(
            f"{download.hub_id} was downloaded ({total / 1e6:.0f} MB).", icon=":material/check:"
        )
    elif state == "cancelled":
        st.info(f"{download.hub_id}: download canceled, partial files deleted.")
    else:
        messages.show_problem(f"{download.hub_id}: {download.error}", icon=":material/cloud_off:")
    if timed and state != "running":
        st.rerun()  # the download has ended: redraw the page without a timer
