"""Downloads of the page "One pass": an offline copy, its tensors and its code."""

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

_VISITED = "one_pass_heads_visited"  # session key: a pass, and the heads opened in it

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
    """Show files, code and link in a collapsed section. head: the open head; choice: its name."""
    walk = Walk(passed, off, place, choice, _visited(passed, choice), dict(about()))
    tensors = partial(arrays, passed, head)
    folded(downloads.TITLE, "one_pass_downloads", _parts, walk, tensors)


def _parts(walk: Walk, tensors: Callable[[], dict[str, Any]]) -> None:
    name = f"{walk.passed.run.model}_one_pass"
    page = partial(offline.page, walk)
    downloads.buttons(
        File("Offline copy (HTML)", page, f"{name}.html", "text/html"),
        downloads.npz("All tensors", tensors, name),
        key="one_pass_save",
    )
    st.markdown(
        f":small[{offline.says(walk)} It opens offline in any browser and includes the guided "
        "tour. Switching parts off needs the model, so that only works here. The NPZ file "
        "contains the tensors of the whole pass and every step of the open head.]"
    )
    downloads.code(snippet(walk.passed, walk.off, walk.choice))
    st.markdown("A link to this view:")
    code_block.plain(_link(walk.place))


def _visited(passed: OnePass, choice: HeadChoice) -> frozenset[tuple[int, int]]:
    """The heads of this pass that the visitor has opened, including this one."""
    key, heads = st.session_state.get(_VISITED, (None, frozenset()))
    heads = (heads if key == passed.run.key else frozenset()) | {(choice.layer, choice.head)}
    st.session_state[_VISITED] = passed.run.key, heads
    return heads


def _link(place: Place | None) -> str:
    """The page's URL, including the location in the picture."""
    url = downloads.url("one_pass")
    if place is None:
        return url
    at = urllib.parse.urlencode({"one_pass_at": written(place)})
    return f"{url}{'' if url.endswith('?') else '&'}{at}"


def arrays(passed: OnePass, head: OpenHead) -> dict[str, Any]:
    """The tensors of the pass and of its open head (named `head_...`), and the tokens."""
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
    """Python code that recomputes the pass and prints numbers of the open head."""
    run = passed.run
    return SNIPPET.format(
        model=run.model,
        text=ascii(run.tokens.text),
        off=off,
        layer=choice.layer,
        head=choice.head,
    )
