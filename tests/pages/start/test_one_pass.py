"""Compare the picture, story, tables and locations of One pass to the tensors."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.start.one_pass import lessons, locations
from serving import models
from serving.one_pass import one_pass
from tests.helpers.apptest import VIEWS, messages, open_page, plain_tables
from tests.helpers.bundled_models import DECODER, ENCODER
from tests.helpers.packed_arrays import Arrays, unpack

PAGE = "pages/start/one_pass/page.py"
TEXT = "Nine grey geese fly"
LAYER, HEAD = 7, 4


def picture_data(site: AppTest) -> list[tuple[dict[str, Any], Arrays]]:
    """Header and arrays of the picture and of its open part, as sent to the browser."""
    return [unpack(element.proto.bytes) for element in pictures(site)]


def pictures(site: AppTest) -> list[Any]:
    """The drawings, without the component that saves the quiz answers."""
    elements = site.get("bidi_component")
    return [element for element in elements if element.proto.WhichOneof("data") == "bytes"]


def open_one_pass(site: AppTest, model: str, **query: str) -> AppTest:
    parameters = {"text": TEXT, "model": model, "layer": str(LAYER - 3), "head": str(HEAD)} | query
    return open_page(site, PAGE, **{f"one_pass_{name}": v for name, v in parameters.items()})


@pytest.mark.parametrize("name", [ENCODER, DECODER])
def test_browser_receives_the_tensors(site: AppTest, name: str):
    open_one_pass(site, name)
    assert not site.exception
    assert not messages(site)
    (main, numbers), (head, open_numbers) = picture_data(site)
    model = models.get(name)
    ids = model.tokenizer.encode(TEXT).ids
    with torch.inference_mode():
        output = model.core(torch.tensor([ids]), record=True)
    assert (main["layers"], main["heads"]) == (
        len(output.layers),
        output.records[0].q.shape[1],
    )
    norms = torch.stack([state[0].norm(dim=-1) for state in output.hidden_states])
    np.testing.assert_allclose(numbers["state_norms"], norms, rtol=1e-5)
    mlp = torch.stack([layer.mlp_output[0].norm(dim=-1) for layer in output.layers])
    np.testing.assert_allclose(numbers["mlp_norms"], mlp, rtol=1e-5)
    assert (head["layer"], head["head"]) == (LAYER - 3, HEAD)
    record = output.records[LAYER - 3]
    np.testing.assert_allclose(open_numbers["weights"], record.weights[0, HEAD], atol=1e-6)
    np.testing.assert_allclose(open_numbers["context"], record.context[0, HEAD], atol=1e-5)


def test_tables_match_the_picture(site: AppTest):
    open_one_pass(site, DECODER)
    (_, numbers), _ = picture_data(site)
    edges, likeliest, shares = plain_tables(site)[-3:]
    last = len(numbers["flow_residual"][0]) - 1
    into = numbers["flow_edges"]
    into = into[(into[:, 1] == last) & (into[:, 2] != last)]
    np.testing.assert_allclose(edges["share of the update"], np.sort(into[:, 3])[::-1], atol=1e-4)
    logits, log_sum = numbers["next_logits"][:10], numbers["log_sums"][9]
    np.testing.assert_allclose(likeliest["probability"], np.exp(logits - log_sum), atol=1e-4)
    assert shares["share of the logit"].sum() == pytest.approx(float(logits[0]), abs=1e-2)


@pytest.mark.parametrize("name", [DECODER, "gpt2-novels"])
def test_contributions_sum_to_the_logits(site: AppTest, name: str):
    open_one_pass(site, name, layer="0", head="0")
    (_, numbers), _ = picture_data(site)
    logits = numbers["next_logits"][: len(numbers["why_heads"])]
    parts = [numbers[f"why_{part}"].reshape(len(logits), -1) for part in ("heads", "mlp", "rest")]
    np.testing.assert_allclose(np.concatenate(parts, 1).sum(1), logits, atol=1e-3)
    for word, (top, keys) in enumerate(zip(numbers["why_top"], numbers["why_keys"], strict=True)):
        heads = numbers["why_heads"][word].ravel()[top.astype(int)]
        np.testing.assert_allclose(keys.sum(axis=1), heads, atol=1e-4)


def test_default_head_follows_text(site: AppTest):
    open_page(site, PAGE, one_pass_text="The capital of France is Paris. The capital of Italy is")
    first = picture_data(site)[0][0]["first"]
    assert site.select_slider("one_pass_layer").value == first["layer"]
    site.text_input("one_pass_text").set_value(TEXT).run()
    then = picture_data(site)[0][0]["first"]
    assert (then["layer"], then["head"]) != (first["layer"], first["head"])
    assert site.select_slider("one_pass_layer").value == then["layer"]
    site.select_slider("one_pass_layer").set_value(LAYER).run()
    site.text_input("one_pass_text").set_value(f"{TEXT} south").run()
    assert site.select_slider("one_pass_layer").value == LAYER


def test_disabled_part_is_in_the_link_and_adds_nothing(site: AppTest):
    open_one_pass(site, DECODER, off=f"F{LAYER} L2H1 mask")
    (header, numbers), _ = picture_data(site)
    assert header["off"] == [f"F{LAYER}", "L2H1", "mask"]
    assert header["causal"] is False
    assert not numbers["mlp_norms"][LAYER].any()
    assert numbers["mlp_norms"][LAYER + 1].all()


@pytest.mark.parametrize("off", ["L99H0", "<img src=x onerror=alert(1)>"])
def test_unknown_part_shows_message(site: AppTest, off: str):
    open_one_pass(site, DECODER, off=off)
    assert len(messages(site)) == 1
    assert site.text_input("one_pass_off").value == off
    assert picture_data(site)[0][0]["off"] == []


def test_picture_opens_at_the_linked_location(site: AppTest):
    open_one_pass(site, DECODER, at=f"matrix scores {LAYER - 3} {HEAD} 2 1 2 5")
    place = picture_data(site)[0][0]["place"]
    assert (place["matrix"], place["row"], place["column"], place["told"]) == ("scores", 2, 1, 5)


def test_navigation_does_not_resend_picture(site: AppTest):
    """If the data is unchanged, Streamlit sends a reference instead."""
    open_one_pass(site, DECODER, at=f"layer weights {LAYER - 3} {HEAD} 2 1 2 -1")
    picture, head = pictures(site)
    site.query_params["one_pass_at"] = f"matrix scores {LAYER - 3} {HEAD + 1} 2 1 2 -1"
    site.session_state["one_pass_head"] = HEAD + 1
    site.run()
    whole_then, head_then = pictures(site)
    assert whole_then.proto == picture.proto
    assert head_then.proto != head.proto
    site.text_input("one_pass_text").set_value(f"{TEXT} over the lake").run()
    # Another matrix opens at this location.
    assert picture_data(site)[0][0]["place"]["matrix"] == "scores"


def test_missing_location_is_ignored(site: AppTest):
    open_one_pass(site, DECODER, at="matrix q 4 4 0 64 0 -1")  # Layer 4, head 4.
    assert not site.exception
    assert picture_data(site)[0][0]["place"] is None
    passed = one_pass(DECODER, TEXT)
    results = [locations.open_location(f"matrix {location} -1", passed, 4, 4) for location in (
        "q 4 4 0 63 0", "scores 30 0 0 0 0", "scores 4 9 0 0 0", "weights 4 4 0 9 0",
        "q 4 4 0 0 99", "weights 5 4 0 0 0",
    )]  # fmt: skip
    assert results[0] is not None
    assert results[1:] == [None] * 5


@pytest.mark.parametrize("lesson", lessons.LESSONS)
def test_lesson_accepts_everything_in_its_address(site: AppTest, lesson: str):
    subject = lessons.Subject(TEXT, DECODER, LAYER - 3, HEAD, query=3)
    address = urlsplit(lessons.address(lesson, subject))
    name = address.path[1:].replace("-", "_")
    [view] = [view for view in VIEWS if view.endswith(f"/{name}/page.py")]
    open_page(site, view, **dict(parse_qsl(address.query)))
    assert not site.exception
    assert not site.toast  # A rejected value would show a toast.
    boxes = [box.value for kind in ("text_input", "text_area") for box in site.get(kind)]
    assert TEXT in boxes
