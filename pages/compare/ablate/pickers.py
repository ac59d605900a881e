"""Controls of the page "Ablate": presets, text, model, heads and position."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from pages.compare.ablate import runs
from pretrained import ModelSpec
from serving import models
from serving.heads import HeadId
from ui.widgets import controls
from ui.widgets.linked import linked
from ui.widgets.visit import Visit, VisitPart, current

SMOLLM2, MINILM, BERT = "smollm2-135m-instruct", "all-minilm-l6-v2", "bert-novels"
CAPITAL = "The capital of France is Paris. The capital of Italy is"
TEXT, MODEL, HEADS, KIND, POSITION = (
    f"ablate_{name}" for name in ("text", "model", "heads", "kind", "position")
)

# Widget values of each preset, found by ranking all heads on these sentences.
# Presets of a model that isn't installed are left out.
PRESETS: dict[str, dict[str, object]] = {
    "forgetting Rome": {TEXT: CAPITAL, MODEL: SMOLLM2, HEADS: ["L23H4"], KIND: "zero"},
    "three small effects, one large": {
        TEXT: "When Mary and John went to the store, John gave a drink to",
        MODEL: SMOLLM2, HEADS: ["L1H5", "L1H3", "L29H1"], KIND: "zero",
    },
    "uniform does more than zero": {
        TEXT: "kettle lamp river stone kettle lamp river",
        MODEL: SMOLLM2, HEADS: ["L7H2"], KIND: "uniform",
    },
    "a head that copies a word": {
        TEXT: "The quick zebra jumped over the lazy walrus. The quick zebra jumped over the lazy",
        MODEL: SMOLLM2, HEADS: ["L3H4"], KIND: "uniform",
    },
    "a masked word": {
        TEXT: "She put on her [MASK] and went out.",
        MODEL: BERT, HEADS: ["L0H6"], KIND: "zero",
    },
    "an encoder": {TEXT: controls.ANIMAL, MODEL: MINILM, HEADS: ["L3H1"], KIND: "zero"},
}  # fmt: skip


def text() -> str:
    """The text field, with examples that set every control."""
    ready_names = {entry.spec.name for entry in models.available()}
    examples = [name for name, values in PRESETS.items() if values[MODEL] in ready_names]
    return controls.text("Text", TEXT, CAPITAL, examples=examples, on_select=_use_preset)


def _use_preset(choice: str) -> None:
    for key, value in PRESETS[choice].items():
        st.session_state[key] = list(value) if isinstance(value, list) else value
    st.session_state[POSITION] = runs.AUTOMATIC


def heads(spec: ModelSpec) -> list[str]:
    """The selected heads, without those that a newly selected model doesn't have."""
    options = runs.names(spec)
    default = [{SMOLLM2: "L23H4", BERT: "L0H6"}.get(spec.name, options[0])]
    chosen_before = st.session_state.get(HEADS)
    if chosen_before is not None:
        known = set(options)
        gone = [head for head in chosen_before if head not in known]
        if gone:
            st.session_state[HEADS] = [head for head in chosen_before if head in known] or default
            st.toast(
                f"{spec.title} doesn't have {', '.join(gone)}, so your selection changed.",
                icon=":material/filter_alt_off:",
            )
    choice: list[str] = linked(
        st.multiselect,
        "Heads to switch off",
        options,
        default,
        key=HEADS,
        max_selections=runs.MAX_HEADS,
        placeholder="Type a head, for example L3H1",
        filter_mode="prefix",
        select_all=False,  # otherwise Enter after "L5H1" also selects L15H1 and L25H1
        help=f"L3H1 is layer 3, head 1. {spec.title} has layers 0 to {spec.n_layers - 1} and heads "
        f"0 to {spec.n_heads - 1}. Choose at most {runs.MAX_HEADS}.",
        part=VisitPart(_visit_default(options), _update_visit),
    )
    return choice


def _visit_default(options: list[str]) -> list[str] | None:
    """The previous selection if it ends with the visit's head, otherwise that head alone."""
    visit = current()
    if visit.layer is None or visit.head is None:
        return None
    name = str(HeadId(visit.layer, visit.head))
    before = [head for head in visit.own.get(HEADS, []) if head in options]
    if name not in options:
        return None
    return before if before[-1:] == [name] else [name]


def _update_visit(visit: Visit, heads: list[str]) -> Visit:
    """Make the last head the visit's head, which the page's links open."""
    visit = visit.with_own(HEADS, heads)
    if not heads:
        return visit
    last = HeadId.parse(heads[-1])
    return replace(visit, layer=last.layer, head=last.head)


def kind() -> str:
    """The selected way of switching heads off, "zero" or "uniform"."""
    choice: str = linked(
        st.radio,
        "Method",
        runs.KINDS,
        key=KIND,
        horizontal=True,
        help="Zero: the head outputs nothing. Uniform: it gives every visible key the same "
        "weight, so it outputs the mean of their values.",
    )
    return choice


def position(n_tokens: int) -> str:
    """The selected position of the prediction: "automatic" or an index as text."""
    options = [runs.AUTOMATIC, *map(str, range(n_tokens))]
    if st.session_state.get(POSITION, runs.AUTOMATIC) not in options:  # the text became shorter
        st.session_state[POSITION] = runs.AUTOMATIC
    choice: str = linked(
        st.selectbox,
        "Position",
        options,
        key=POSITION,
        help="A decoder predicts the token after this one; automatic uses the last token. An "
        "encoder with a masked-word head masks this token; automatic uses the first [MASK] or, if "
        "there isn't one, the last word. Other encoders predict nothing, so all positions are "
        "shown.",
    )
    return choice


def switch_off(head: str) -> None:
    """Switch off one more head; at the maximum, the oldest one is switched back on."""
    chosen = [name for name in st.session_state.get(HEADS, []) if name != head]
    st.session_state[HEADS] = [*chosen, head][-runs.MAX_HEADS :]


def switch_off_only(head: str | None) -> None:
    """Switch off only this head, or no head for None."""
    st.session_state[HEADS] = [] if head is None else [head]
