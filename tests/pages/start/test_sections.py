"""Compare the sections below the picture of one pass to the tensors."""

from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.start.one_pass import endings, layers, learned_parts
from serving import models
from serving.one_pass import one_pass
from tests.helpers.apptest import messages, open_page, plain_tables
from tests.helpers.bundled_models import DECODER, ENCODER
from tests.helpers.packed_arrays import unpack

PAGE = "pages/start/one_pass/page.py"
TEXT = "Nine grey geese fly"
TOKEN = 2


def open_one_pass(
    site: AppTest, model: str = DECODER, *, layer: int = 4, head: int = 5, **query: str
):
    at = f"whole weights {layer} {head} 0 0 {TOKEN} -1"
    parameters = {"text": TEXT, "model": model, "layer": str(layer), "head": str(head), "at": at}
    parameters |= query
    open_page(site, PAGE, **{f"one_pass_{name}": value for name, value in parameters.items()})
    assert not site.exception
    assert not messages(site)
    return site


def headers(site: AppTest) -> list[dict[str, Any]]:
    """The drawings, without the component that saves the quiz answers."""
    elements = site.get("bidi_component")
    pictures = [element for element in elements if element.proto.WhichOneof("data") == "bytes"]
    return [unpack(element.proto.bytes)[0] for element in pictures]


@pytest.mark.parametrize("name", [DECODER, ENCODER])
def test_token_through_all_layers(site: AppTest, name: str):
    open_one_pass(site, name)
    table = plain_tables(site)[0]
    model = models.get(name)
    ids = torch.tensor([model.tokenizer.encode(TEXT).ids])
    with torch.inference_mode():
        output = model.core(ids, record=True)
        attention = [layer.attention.output[0, TOKEN].norm() for layer in output.layers]
        logits = [model.core(ids[:, : TOKEN + 1]).logits] if name == DECODER else []
    np.testing.assert_allclose(table[layers.ATTENTION], attention, rtol=1e-3)
    for layer, record in enumerate(output.records):
        weights = record.weights[0, :, TOKEN].mean(dim=0)
        labels = one_pass(name, TEXT).run.tokens.labels
        most_read = labels.index(table["attends most to"][layer])
        assert table["weight"][layer] == pytest.approx(float(weights[most_read]), abs=6e-4)
        assert most_read != TOKEN
    for last in logits:  # The last row is the model's prediction after this token.
        likeliest, token_id = last[0, -1].softmax(dim=-1).max(dim=-1)
        assert table["probability"].iloc[-1] == pytest.approx(float(likeliest), abs=1e-4)
        message = model.tokenizer.decode([int(token_id)])
        assert table["predicted next token"].iloc[-1] == message.strip()


def test_most_read_token_is_not_special_or_a_sink():
    decoder, encoder = one_pass(DECODER, TEXT), one_pass(ENCODER, TEXT)
    assert 0 not in layers.most_read(decoder, 2)[0]
    special = np.flatnonzero(encoder.run.tokens.special)
    assert not set(special) & set(layers.most_read(encoder, 2)[0])
    assert set(layers.most_read(decoder, 0)[0]) == {0}  # The first token sees only itself.
    np.testing.assert_allclose(layers.most_read(decoder, 0)[1], 1, rtol=1e-6)


@pytest.mark.parametrize("name", [DECODER, ENCODER])
def test_every_parameter_is_counted_once(site: AppTest, name: str):
    open_one_pass(site, name, part="What training changes")
    table = plain_tables(site)[0]
    column = "parameters, all layers"
    counts = sum(int(number.replace(",", "")) for number in table[column] if number)
    core = models.get(name).core
    assert counts == sum(parameter.numel() for parameter in core.parameters())
    assert learned_parts.count_parameters(name).total == counts
    by_stop = dict(zip(table["step"], table[column], strict=True))
    feed_forward = core.blocks[0].mlp
    assert by_stop["the feed-forward network adds"] == (
        f"{len(core.blocks) * sum(p.numel() for p in feed_forward.parameters()):,}"
    )


def test_lengths_match_the_open_layer_and_head(site: AppTest):
    open_one_pass(site, part="What training changes")
    table = plain_tables(site)[0]
    length = dict(zip(table["step"], table["length"], strict=True))
    run = one_pass(DECODER, TEXT).run
    assert float(length["query of L4H5"]) == pytest.approx(
        float(np.linalg.norm(run.q[4, 5, TOKEN])), rel=1e-3
    )
    layer = run.layer(4)
    assert float(length["leaves layer 4"]) == pytest.approx(
        float(layer.output[0, TOKEN].norm()), rel=1e-3
    )


def test_mask_gives_no_weight_to_later_tokens():
    decoder = endings.ending(one_pass(DECODER, TEXT), TOKEN)
    encoder = endings.ending(one_pass(ENCODER, TEXT), TOKEN)
    assert decoder.later_share == 0
    weights = encoder.passed.run.weights[:, :, TOKEN]
    assert encoder.later_share == pytest.approx(1 - float(weights[..., : TOKEN + 1].sum(-1).mean()))
    assert encoder.later_share > 0.1
    assert (decoder.n_seen, encoder.n_seen) == (TOKEN + 1, len(encoder.passed.run.tokens))


def test_nearest_vector_belongs_to_another_ordinary_token():
    passed = one_pass(ENCODER, TEXT)
    nearest = endings.ending(passed, TOKEN).nearest
    assert nearest is not None
    other, before, after = nearest
    assert other != TOKEN
    assert not passed.run.tokens.special[other]
    states = passed.run.tensors.states
    for state, cosine in ((states[0], before), (states[-1], after)):
        expected = torch.cosine_similarity(state[other], state[TOKEN], dim=0)
        assert cosine == pytest.approx(float(expected), rel=1e-5)
    assert endings.ending(one_pass(DECODER, "a"), 0).nearest is None


def test_same_token_is_found_in_another_model():
    decoder, encoder = one_pass(DECODER, TEXT), one_pass(ENCODER, TEXT)
    for token, label in enumerate(decoder.run.tokens.labels[1:], start=1):
        other = encoder.run.tokens.labels[endings.same_token(token, decoder, encoder)]
        assert label in other or other in label
    # The [CLS] token.
    assert endings.same_token(0, encoder, decoder) == len(decoder.run.tokens) - 1


def test_one_click_switches_to_the_other_kind_of_model(site: AppTest):
    open_one_pass(site, part="Decoder and encoder")
    table = plain_tables(site)[0]
    assert table.iloc[3].tolist()[1] == "0.0%"
    site.button("one_pass_other").click().run()
    assert not site.exception
    assert site.selectbox("one_pass_model").value == ENCODER
    assert headers(site)[0]["decoder"] is False
