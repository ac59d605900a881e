"""The download panel: one download at a time for the whole site, with progress and cancel."""

from __future__ import annotations

import threading

import streamlit as st

import pretrained
from pretrained.hub import downloads
from pretrained.names import check_hub_id
from serving import models
from ui.widgets import messages


class Downloads:
    """The download that runs or ran last, shared by all visitors."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.current: downloads.Download | None = None

    def start(self, hub_id: str, revision: str) -> str:
        """Begin a download if none runs and the hub answers. Returns an error text, or nothing."""
        # before the lock: another visitor need not wait until this one's question times out
        if not downloads.hub_reachable():
            return "The hub does not answer from this machine: check its network connection."
        with self._lock:
            if self.current is not None and self.current.state == "running":
                return f"{self.current.hub_id} is being downloaded: wait for it or cancel it."
            try:
                self.current = downloads.start_download(hub_id, revision)
            except (ValueError, OSError) as error:
                return str(error)
        return ""


DOWNLOADS = Downloads()


def panel() -> None:
    """Choose a model, see its size, download it, watch or cancel; a sentence where it cannot be."""
    if not downloads.downloads_allowed():
        st.info("Downloads are switched off on this site.", icon=":material/block:")
        return
    missing = {
        entry.spec.name: entry for entry in pretrained.catalog() if entry.state == "downloadable"
    }
    by_hub_id = "Another model, by its hub id"
    chosen = st.selectbox(
        "Model to download",
        [*missing, by_hub_id],
        format_func=lambda name: _label(missing[name]) if name in missing else name,
        key="models_download",
    )
    # always there, so that nothing moves when another model is chosen
    typed = st.text_input(
        "Hub id of another model",
        placeholder="organisation/model",
        max_chars=100,
        key="models_hub_id",
        disabled=chosen != by_hub_id,
        help="Models of the GPT-2, BERT and Llama architectures with safetensors weights are "
        "accepted; the size is checked before anything is fetched.",
    )
    if chosen == by_hub_id:
        hub_id, revision = typed.strip(), "main"
    else:
        hub_id, revision = missing[chosen].spec.hub_id, missing[chosen].spec.revision
    if st.button("Download", icon=":material/download:", disabled=not hub_id, key="models_start"):
        _start(hub_id, revision)
    current = DOWNLOADS.current
    if current is not None:
        timed = current.state == "running"
        st.fragment(_watch, run_every=0.5 if timed else None)(current, timed)


def _label(entry: pretrained.CatalogEntry) -> str:
    """A model with the size of its download, and whether it could then be loaded."""
    label = f"{entry.spec.title}, {entry.spec.download_bytes / 1e9:.2f} GB"
    fits = models.n_bytes(entry) <= models.MODEL_BUDGET_BYTES
    return label if fits else f"{label}, too large for this site's memory"


def _start(hub_id: str, revision: str) -> None:
    try:
        check_hub_id(hub_id)
    except ValueError as error:
        messages.problem(error)
        return
    with st.spinner("Asking the hub …"):
        problem = DOWNLOADS.start(hub_id, revision)
    if problem:
        messages.problem(problem, icon=":material/cloud_off:")


def _watch(download: downloads.Download, timed: bool) -> None:
    state = download.state
    arrived, total = download.progress()
    if state == "running":
        share = min(arrived / total, 1.0) if total else 0.0
        size = f"{arrived / 1e6:.0f} of {total / 1e6:.0f} MB" if total else "asking for the size"
        st.progress(share, text=f"{download.hub_id}: {size}")
        st.button("Cancel", icon=":material/stop:", key="models_cancel", on_click=download.cancel)
    elif state == "done":
        st.success(f"{download.hub_id} is here ({total / 1e6:.0f} MB).", icon=":material/check:")
    elif state == "cancelled":
        st.info(f"{download.hub_id}: cancelled, what had arrived is removed.")
    else:
        messages.problem(f"{download.hub_id}: {download.error}", icon=":material/cloud_off:")
    if timed and state != "running":
        st.rerun()  # it is over: the next run of the page makes this view without a timer
