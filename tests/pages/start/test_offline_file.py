"""The offline HTML file of one pass: its contents and hostile user text."""

import base64
import hashlib
import re
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pages.start.one_pass import downloads, offline
from pages.start.one_pass.offline import OfflineTour
from pages.start.one_pass.story import STEPS
from serving import models
from serving.one_pass import head_detail, layer_detail, one_pass
from tests.helpers.bundled_models import DECODER, ENCODER, FIRST_GPT2
from tests.helpers.html_elements import Elements
from tests.helpers.packed_arrays import Arrays, unpack
from tests.helpers.snippets import run_snippet
from ui.widgets.head_choice import HeadChoice

HOSTILE = "</script><script>alert(1)</script></title><img src=x onerror=alert(1)><!--"
TEXT = "Nine grey geese fly"


def walk(name: str = DECODER, text: str = TEXT, **changes: Any) -> OfflineTour:
    (entry,) = [entry for entry in models.available() if entry.spec.name == name]
    choice = HeadChoice(entry, 2, 1)
    facts = {"model": entry.spec.title, "sentence": text}
    inputs = OfflineTour(one_pass(name, text), (), None, choice, frozenset({(2, 1)}), facts)
    return replace(inputs, **changes)


def layers(file: bytes) -> dict[int, tuple[dict[str, Any], Arrays]]:
    """The file's contents for each layer, by index."""
    results = {}
    for name, text in Elements(file.decode()).scripts().items():
        if name and name.startswith("layer-"):
            results[int(name[6:])] = unpack(zlib.decompress(base64.b64decode(text)))
    return results


def test_user_text_is_only_text():
    text = offline.page(walk(FIRST_GPT2, HOSTILE)).decode()
    elements = Elements(text)
    tags = [tag for tag, _ in elements.found]
    assert "img" not in tags
    n_layers = len(one_pass(FIRST_GPT2, HOSTILE).run.weights)
    assert tags.count("script") == 1 + n_layers + 1  # The main data, the layers and the script.
    assert any(HOSTILE in paragraph for paragraph in elements.texts_of("p"))
    scripts = elements.scripts()
    header, _ = unpack(base64.b64decode(scripts["whole"]))
    assert header["about"]["sentence"] == HOSTILE
    assert "</" in "".join(header["labels"])
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    digest = base64.b64encode(hashlib.sha256((scripts[None] or "").encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; script-src 'sha256-{digest}';")
    assert not re.search("https?://(?!www.w3.org/)", text)
    assert not re.search(r"\b(src|href)=(?!\"data:,\"|x )", text.partition("<script")[0])


@pytest.mark.parametrize("name", [DECODER, ENCODER])
def test_file_contains_every_head_exactly(name: str):
    inputs = walk(name)
    run, layer_data = inputs.passed.run, layers(offline.page(inputs))
    n_layers, n_heads = run.q.shape[:2]
    assert sorted(layer_data) == list(range(n_layers))
    for number, (header, arrays) in layer_data.items():
        assert [int(head) for head in header["heads"]] == list(range(n_heads))
        for name, strip in layer_detail(run, number).strips.items():
            np.testing.assert_array_equal(arrays[f"strip {name}"], strip)
        for head in range(n_heads):
            detail = head_detail(run, number, head)
            about = header["heads"][str(head)]
            for step in STEPS:
                prefix = f"shared {about['shared']}" if step in ("k", "v") else f"head {head}"
                np.testing.assert_array_equal(arrays[f"{prefix} {step}"], getattr(detail, step))
            assert about["scale"] == detail.scale
            assert {(c["layer"], c["head"]) for c in about["captions"]} == {(number, head)}


def test_stated_file_size():
    """Allow 15%, because compression depends on the numbers."""
    for text in (TEXT, " ".join([TEXT] * 8)):
        inputs = walk(FIRST_GPT2, text)
        expected = offline.file_bytes(inputs.passed, offline.heads(inputs))
        assert len(offline.page(inputs)) == pytest.approx(expected, rel=0.15)


def test_long_text_includes_one_head_per_layer_and_the_open_ones(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(offline, "MAX_BYTES", 1)
    inputs = walk(FIRST_GPT2, visited=frozenset({(2, 1), (4, 0), (4, 7)}))
    data = layers(offline.page(inputs))
    heads = {
        number: [int(head) for head in header["heads"]] for number, (header, _) in data.items()
    }
    assert heads == dict.fromkeys(range(len(data)), [1]) | {4: [0, 1, 7]}


def test_arrays_match_the_tensors():
    passed = one_pass(DECODER, TEXT)
    arrays = downloads.arrays(passed, head_detail(passed.run, 2, 1))
    np.testing.assert_array_equal(arrays["weights"][2, 1], arrays["head_weights"])
    norms = np.linalg.norm(arrays["states"], axis=-1)
    np.testing.assert_allclose(norms, passed.state_norms, rtol=1e-5)
    likeliest = models.get(DECODER).tokenizer.decode([int(arrays["next_token_ids"][0])])
    assert likeliest.strip() == passed.guesses[-1]


def test_code_runs_and_prints_the_weights(capsys: pytest.CaptureFixture[str]):
    inputs = walk(text='Grey "geese" {fly}\'')
    _, printed = run_snippet(downloads.snippet(inputs.passed, (), inputs.choice), capsys)
    assert str(head_detail(inputs.passed.run, 2, 1).weights) in printed
