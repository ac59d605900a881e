"""The Home page: the stored picture without a model, then the user's text."""

from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import pretrained
from serving import models
from serving.one_pass import one_pass
from tests.helpers.apptest import HOME, messages, open_page
from tests.helpers.bundled_models import DECODER, ENCODER, bundled_model
from tests.helpers.packed_arrays import Arrays, unpack
from ui.canvas import one_pass as canvas
from ui.canvas.one_pass.stored import MARY

pytestmark = pytest.mark.usefixtures("bundled_weights")

ONE_PASS = "pages/start/one_pass/page.py"


def picture(site: AppTest) -> tuple[dict[str, Any], Arrays]:
    return unpack(site.get("bidi_component")[0].proto.bytes)


@pytest.fixture
def no_model_loads(monkeypatch: pytest.MonkeyPatch):
    def fail_to_load(name: str) -> None:
        raise AssertionError(f"{name} is loaded")

    monkeypatch.setattr(pretrained, "load_by_name", fail_to_load)
    with models.by_key.disabled(), one_pass.disabled():
        yield


@pytest.mark.usefixtures("no_model_loads")
def test_first_picture_needs_no_model(site: AppTest):
    open_page(site, HOME)
    assert not site.exception
    assert not messages(site)
    header, _ = picture(site)
    assert site.text_input("home_text").value == MARY
    assert header["labels"][1] == "Mary"
    assert (header["first"]["layer"], header["first"]["column"]) == (23, 1)
    assert (header["layers"], header["heads"]) == (30, 9)
    assert header["away"] == {"text": MARY, "model": DECODER}


def test_new_text_runs_the_model(site: AppTest):
    open_page(site, HOME, home_text="Two cats sat", home_model=ENCODER)
    _, arrays = picture(site)
    model = models.get(ENCODER)
    with torch.inference_mode():
        output = model.core(torch.tensor([model.tokenizer.encode("Two cats sat").ids]), record=True)
    norms = torch.stack([state[0].norm(dim=-1) for state in output.hidden_states])
    np.testing.assert_allclose(arrays["state_norms"], norms, rtol=1e-5)


def test_one_pass_reports_a_model_that_fails_to_load(
    site: AppTest, monkeypatch: pytest.MonkeyPatch
):
    def broken(name: str) -> None:
        raise ValueError(f"the weights of {name} are damaged")

    monkeypatch.setattr(pretrained, "load_by_name", broken)
    with models.by_key.disabled(), one_pass.disabled():
        open_page(site, ONE_PASS)
    assert not site.exception
    assert any("damaged" in message for message in messages(site))


def test_one_pass_shows_the_stored_picture_while_its_model_loads(
    site: AppTest, monkeypatch: pytest.MonkeyPatch
):
    events: list[str] = []
    model, draw = bundled_model(DECODER), canvas.one_pass

    def loads(name: str) -> pretrained.Pretrained:
        events.append(f"{name} is loaded")
        return model

    def draws(*args: Any, **kwargs: Any) -> None:
        events.append("drawn")
        draw(*args, **kwargs)

    monkeypatch.setattr(pretrained, "load_by_name", loads)
    monkeypatch.setattr(canvas, "one_pass", draws)
    one_pass.clear()
    models.by_key.clear()
    open_page(site, ONE_PASS)
    assert not site.exception
    # The user's own picture loads the model. The stored picture was sent only once.
    assert events == ["drawn", f"{DECODER} is loaded", "drawn"]
