"""Downloads of the page "One pass": the walk as one file, its tensors, its code."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from pages.start.one_pass import offline
from pages.start.one_pass.offline import Walk
from pages.start.one_pass.places import Place, written
from pages.start.one_pass.story import STEPS
from serving.one_pass import OnePass, OpenHead
from ui.canvas.component import about
from ui.export import downloads
from ui.export.downloads import File
from ui.widgets import code_block
from ui.widgets.folded import folded
from ui.widgets.head_choice import HeadChoice

_VISITED = "one_pass_heads_visited"  # in the session: the pass, and its heads that were opened

SNIPPET = """\
from serving.one_pass import one_pass, open_head, open_layer

passed = one_pass({model!r}, {text}, {off!r})
layer = open_layer(passed.run, {layer})
head = open_head(passed.run, {layer}, {head})
print(passed.state_norms[{layer}])  # the length of each token's vector that enters the layer
print(layer.norms["attention"])  # the length of what attention adds to it there
print(head.weights)  # (T, S) of layer {layer}, head {head}
"""


def show(
    passed: OnePass, head: OpenHead, off: tuple[str, ...], place: Place | None, choice: HeadChoice
) -> None:
    """Files, the code and the link, folded. `head`: the open one, and `choice` its name."""
    walk = Walk(passed, off, place, choice, _visited(passed, choice), dict(about()))
    tensors = partial(arrays, passed, head)
    folded(downloads.TITLE, "one_pass_downloads", _parts, walk, tensors)


def _parts(walk: Walk, tensors: Callable[[], dict[str, Any]]) -> None:
    name = f"{walk.passed.run.model}_one_pass"
    page = partial(offline.page, walk)
    downloads.buttons(
        File("The walk as one HTML file", page, f"{name}.html", "text/html"),
        downloads.npz("The tensors", tensors, name),
        key="one_pass_save",
    )
    st.markdown(
        f":small[{offline.says(walk)} It opens in any browser, without a network, and tells the "
        "story too; only switching parts off needs the model, and stays here. The NPZ file holds "
        "the tensors of the whole pass and every step of the open head.]"
    )
    downloads.code(snippet(walk.passed, walk.off, walk.choice))
    st.markdown("A link to this view:")
    code_block.plain(_link(walk.place))


def _visited(passed: OnePass, choice: HeadChoice) -> frozenset[tuple[int, int]]:
    """The heads of this pass that the visitor has opened, this one included."""
    key, heads = st.session_state.get(_VISITED, (None, frozenset()))
    heads = (heads if key == passed.run.key else frozenset()) | {(choice.layer, choice.head)}
    st.session_state[_VISITED] = passed.run.key, heads
    return heads


def _link(place: Place | None) -> str:
    """The address of the page with the place in the picture."""
    url = downloads.url("one_pass")
    if place is None:
        return url
    at = urllib.parse.urlencode({"one_pass_at": written(place)})
    return f"{url}{'' if url.endswith('?') else '&'}{at}"


def arrays(passed: OnePass, head: OpenHead) -> dict[str, Any]:
    """The tensors of the pass and of its open head (named `head_...`), with the tokens."""
    run, tensors = passed.run, passed.run.tensors
    result: dict[str, Any] = {
        "token_ids": np.array(run.tokens.ids),
        "tokens": np.array(run.tokens.labels),
        "states": tensors.states.numpy(),
        "attention_norms": tensors.attention_norms.numpy(),
        "mlp_norms": tensors.mlp_norms.numpy(),
        "weights": run.weights,
        "q": run.q,
        "k": run.k,
        "v": run.v,
        "layer_and_head": np.array([head.layer, head.head]),
    }
    result |= {f"head_{step}": getattr(head, step) for step in STEPS}
    if passed.next_token is not None:
        result["next_token_ids"] = np.array(passed.next_token.ids)
        result["next_token_logits"] = passed.next_token.logits
    return result


def snippet(passed: OnePass, off: tuple[str, ...], choice: HeadChoice) -> str:
    """Python that computes the pass anew and prints numbers of the open head."""
    run = passed.run
    return SNIPPET.format(
        model=run.model,
        text=ascii(run.tokens.text),
        off=off,
        layer=choice.layer,
        head=choice.head,
    )
