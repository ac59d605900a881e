"""Downloads of the page "One pass": an offline copy, its tensors and its code."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from pages.start.one_pass import offline
from pages.start.one_pass.locations import Location, format_location
from pages.start.one_pass.offline import OfflineTour
from pages.start.one_pass.story import STEPS
from serving.one_pass import HeadDetail, OnePass
from ui.canvas.component import picture_caption
from ui.export import downloads
from ui.export.downloads import File
from ui.widgets import code_block
from ui.widgets.head_choice import HeadChoice
from ui.widgets.lazy_expander import lazy_expander

_VISITED = "one_pass_heads_visited"  # session key: a pass, and the heads opened in it

SNIPPET = """\
from serving.one_pass import one_pass, head_detail, layer_detail

passed = one_pass({model!r}, {text}, {off!r})
layer = layer_detail(passed.run, {layer})
head = head_detail(passed.run, {layer}, {head})
print(passed.state_norms[{layer}])  # the length of each token's vector that enters the layer
print(layer.norms["attention"])  # the length of what attention adds to it there
print(head.weights)  # (T, S) of layer {layer}, head {head}
"""


def show(
    one_pass: OnePass,
    head: HeadDetail,
    off: tuple[str, ...],
    place: Location | None,
    choice: HeadChoice,
) -> None:
    """Show files, code and link in a collapsed section. head: the open head; choice: its name."""
    walk = OfflineTour(
        one_pass, off, place, choice, _visited(one_pass, choice), dict(picture_caption())
    )
    tensors = partial(arrays, one_pass, head)
    lazy_expander(downloads.TITLE, "one_pass_downloads", _parts, walk, tensors)


def _parts(walk: OfflineTour, tensors: Callable[[], dict[str, Any]]) -> None:
    name = f"{walk.passed.run.model}_one_pass"
    page = partial(offline.page, walk)
    downloads.buttons(
        File("Offline copy (HTML)", page, f"{name}.html", "text/html"),
        downloads.npz("All tensors", tensors, name),
        key="one_pass_save",
    )
    st.markdown(
        f":small[{offline.description(walk)} It opens offline in any browser and includes the "
        "guided "
        "tour. Switching parts off needs the model, so that only works here. The NPZ file "
        "contains the tensors of the whole pass and every step of the open head.]"
    )
    downloads.code(snippet(walk.passed, walk.off, walk.choice))
    st.markdown("A link to this view:")
    code_block.plain(_link(walk.place))


def _visited(one_pass: OnePass, choice: HeadChoice) -> frozenset[tuple[int, int]]:
    """The heads of this pass that the visitor has opened, including this one."""
    key, heads = st.session_state.get(_VISITED, (None, frozenset()))
    heads = (heads if key == one_pass.run.key else frozenset()) | {(choice.layer, choice.head)}
    st.session_state[_VISITED] = one_pass.run.key, heads
    return heads


def _link(place: Location | None) -> str:
    """The page's URL, including the location in the picture."""
    url = downloads.url("one_pass")
    if place is None:
        return url
    at = urllib.parse.urlencode({"one_pass_at": format_location(place)})
    return f"{url}{'' if url.endswith('?') else '&'}{at}"


def arrays(one_pass: OnePass, head: HeadDetail) -> dict[str, Any]:
    """The tensors of the pass and of its open head (named `head_...`), and the tokens."""
    run, tensors = one_pass.run, one_pass.run.tensors
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
    if one_pass.next_token is not None:
        result["next_token_ids"] = np.array(one_pass.next_token.ids)
        result["next_token_logits"] = one_pass.next_token.logits
    return result


def snippet(one_pass: OnePass, off: tuple[str, ...], choice: HeadChoice) -> str:
    """Python code that recomputes the pass and prints numbers of the open head."""
    run = one_pass.run
    return SNIPPET.format(
        model=run.model,
        text=ascii(run.tokens.text),
        off=off,
        layer=choice.layer,
        head=choice.head,
    )
