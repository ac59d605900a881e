"""What the picture of one pass says in the browser is what the tensors of the model hold.

Numbers at random places of every kind that it shows, of three models: read by pointing where a
visitor can read them, and from what the drawing holds elsewhere.
"""

import math
import random
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import torch
from playwright.sync_api import Locator, Page, expect
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

import pretrained
from attention_core import Transformer
from benchmarks.browser import Server, Site
from tests.helpers.browser import open_page, press, written
from tests.helpers.bundled_models import DECODER, ENCODER
from tests.helpers.reference_models import enlarge
from tests.helpers.visitors import PAINT_SECONDS, settled

TEXT = "Nine grey geese fly over the lake before the storm"
RANDOM_GPT2 = (
    "random-gpt2"  # has position vectors, which SmolLM2 has not, and predicts, unlike MiniLM
)
MATRICES = ("q", "k", "scores", "scaled", "weights", "v", "context", "added")
STRIPS = (
    *("input", "attention_reads", "attention_sum", "mlp_reads", "mlp_output", "output"),
    "attention",
)
N_STRIP, N_NEURONS = 16, 8
POINTED_CELLS, POINTED_LAYERS, HELD, CODES = 5, 6, 2, 12  # of each matrix; of the whole; of a kind
SECONDS_OF_A_POINTER = 5  # until what is pointed at is read, also on a busy machine
LEAST_VALUES = 100  # of a model, so that they are at least 300 in all
LENGTHS = ("state_norms", "attention_norms", "mlp_norms")
AT_1 = 9  # of the temperatures 0.1, 0.2, ...
CHOICE = random.Random()
NUMBER = r"([-−+\d.e∞]+)"

# Everything that the drawing and what is opened in it hold, and the weights of all heads as codes.
HOLDS = """
async (canvas) => {
  const { map } = canvas.closest("figure").lastDrawn;
  const opened = window.attentionLabOpened.get(map.picture);
  const stream = new Blob([map.body]).stream().pipeThrough(new DecompressionStream("deflate"));
  const codes = new Uint8Array(await new Response(stream).arrayBuffer());
  const lists = (numbers) => Object.fromEntries(
    Object.entries(numbers).map(([name, { shape, values }]) => [name, [shape, [...values]]]));
  return {
    whole: lists(map.numbers), opened: lists(opened.numbers), codes: [...codes],
    ...{ levels: map.levels, largest: map.largest },
  };
}
"""


def save_random_gpt2(folder: Path) -> None:
    """Write a random model of GPT-2's shape: 3 layers of 4 heads of 6."""
    sizes = {"n_positions": 31, "n_embd": 24, "n_layer": 3, "n_head": 4, "n_inner": 52}
    enlarge(GPT2LMHeadModel(GPT2Config(**sizes))).save_pretrained(folder / RANDOM_GPT2)


def strip(vectors: Tensor) -> Tensor:
    return vectors[..., :N_STRIP]


def of_the_whole(core: Transformer, ids: Tensor) -> dict[str, Tensor]:
    """What the whole picture shows, by the names under which it is sent."""
    output = core(ids, record=True)
    states, layers = torch.stack([state[0] for state in output.hidden_states]), output.layers
    parts = core.embed(ids, torch.arange(ids.shape[1]))
    leaving = states[-1] if core.final_norm is None else core.final_norm(states[-1])
    found = {
        "token": strip(parts.token[0]),
        "entering": strip(states[0]),
        "leaving": strip(leaving),
        "state_norms": states.norm(dim=-1),
        "attention_norms": torch.stack(
            [layer.attention.output[0].norm(dim=-1) for layer in layers]
        ),
        "mlp_norms": torch.stack([layer.mlp_output[0].norm(dim=-1) for layer in layers]),
        "guess_probabilities": torch.zeros(0),
    }
    if parts.position is not None:
        found["position"] = strip(parts.position)
    if core.config.causal:
        last = states[:, -1] if core.final_norm is None else core.final_norm(states[:, -1])
        found["guess_probabilities"] = (last @ core.unembedding).softmax(dim=-1).max(dim=-1).values
        found["next_logits"] = output.logits[0, -1].topk(50).values
        found["next_probabilities"] = output.logits[0, -1].softmax(dim=-1).topk(50).values
    return found


def of_a_head(core: Transformer, ids: Tensor, number: int, head: int) -> dict[str, Tensor]:
    """What an opened layer and an opened head of it show."""
    layer = core(ids, record=True).layers[number]
    record, mlp = layer.attention, core.blocks[number].mlp
    size = record.q.shape[-1]
    kv_head = head // (record.q.shape[1] // record.k.shape[1])
    out_weight = core.blocks[number].attention.out_weight()[head * size : (head + 1) * size]
    found = {
        "q": record.q[0, head],
        "k": record.k[0, kv_head],
        "v": record.v[0, kv_head],
        "scores": record.scores[0, head],
        "scaled": record.scaled_scores[0, head],
        "weights": record.weights[0, head],
        "context": record.context[0, head],
        "out_weight": strip(out_weight),
        "added": strip(record.context[0, head] @ out_weight),
    }
    for name in STRIPS:
        vectors = record.output if name == "attention" else getattr(layer, name)
        found[f"strip {name}"] = strip(vectors[0])
        found[f"norm {name}"] = vectors[0].norm(dim=-1)
    hidden = layer.mlp_hidden[0]
    written_by = hidden.abs() * mlp.down.weight.norm(dim=1)
    found["neurons"] = written_by.argsort(dim=-1, descending=True)[:, :N_NEURONS]
    found["activations"] = hidden.gather(-1, found["neurons"])
    found["written"] = written_by.gather(-1, found["neurons"])
    return found


def near(expected: Tensor, digits: int | None = None) -> Callable[[tuple[int, ...]], object]:
    """What a number at a place of a tensor may be read as.

    Numbers travel as the float32 that they are, and are written with so many digits. The model runs
    on the site in another process and for the last position alone: sums of some hundred products
    come out in another order, with errors of some 1e-7 of the largest numbers.
    """
    finite = expected[expected.isfinite()].abs()
    absolute = 1e-6 * float(finite.max()) if finite.numel() else 0.0
    relative = 1e-5 if digits is None else max(1e-5, 0.5 * 10 ** (1 - digits))

    def at(place: tuple[int, ...]) -> object:
        return pytest.approx(float(expected[place]), rel=relative, abs=absolute)

    return at


def place_in(choice: random.Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(choice.randrange(size) for size in shape)


def at_rest(picture: Locator, level: str) -> None:
    """Wait until the picture has arrived at a level, and nothing in it moves."""
    expect(picture).to_have_attribute("data-place", re.compile(f"^{level} "))
    settled(picture.page)
    expect(picture).not_to_have_attribute("data-walking", "")


def read_at(picture: Locator, item: str, across: float, down: float, pattern: str) -> list[float]:
    """The numbers of a pattern that are read where this share of an item is pointed at.

    Where the page has moved below the pointer, it is pointed at again, as a visitor would.
    """
    readout = picture.page.locator("figure.one-pass .readout")
    for patience in (SECONDS_OF_A_POINTER, SECONDS_OF_A_POINTER, PAINT_SECONDS):
        x, y = picture.evaluate(
            """(canvas, [name, across, down]) => {
              const { x, y, w, h } = canvas.closest("figure").lastDrawn.items.get(name);
              const { left, top } = canvas.getBoundingClientRect();
              return [left + x + across * w, top + y + down * h];
            }""",
            [item, across, down],
        )
        picture.page.mouse.move(x, y, steps=2)
        with suppress(AssertionError):
            expect(readout).to_have_text(re.compile(pattern), timeout=1000 * patience)
            break
    expect(readout).to_have_text(re.compile(pattern), timeout=1)
    found = re.search(pattern, readout.inner_text())
    assert found is not None
    return [written(number.replace("∞", "inf")) for number in found.groups()]


def cells_are_read(picture: Locator, opened: dict[str, Tensor], layer: int, head: int) -> int:
    """Point at cells of every matrix of an open head; how many were compared."""
    for matrix in MATRICES:
        expected, is_near = opened[matrix], near(opened[matrix], digits=6)
        for _ in range(POINTED_CELLS):
            row, column = place_in(CHOICE, expected.shape)
            across, down = (column + 0.5) / expected.shape[1], (row + 0.5) / expected.shape[0]
            place = rf"^{matrix}, L{layer}H{head}, \[{row}, {column}\]: token [^:]*: "
            [shown] = read_at(picture, f"step {matrix}", across, down, rf"{place}{NUMBER}(?: =|$)")
            assert shown == is_near((row, column)), f"{matrix} [{row}, {column}]"
    return POINTED_CELLS * len(MATRICES)


def lengths_are_read(picture: Locator, whole: dict[str, Tensor]) -> int:
    """Point at tokens in layers of the whole picture; how many numbers were compared."""
    n_layers, n_tokens = whole["mlp_norms"].shape
    n_read, predicts = 0, len(whole["guess_probabilities"]) > 0
    for _ in range(POINTED_LAYERS):
        layer, token = place_in(CHOICE, (n_layers, n_tokens))
        said = (
            rf"^Layer {layer}, token {token} .*: the vector comes in {NUMBER} long, "
            rf"attention adds {NUMBER}, the feed-forward network {NUMBER}\."
        )
        said += rf" .*, probability {NUMBER}\.$" if predicts else "$"
        lengths = read_at(picture, f"slab {layer}", 0.5, (token + 0.5) / n_tokens, said)
        for name, shown in zip(LENGTHS, lengths, strict=False):
            assert shown == near(whole[name], digits=4)((layer, token)), f"{name} {layer} {token}"
        for shown in lengths[len(LENGTHS) :]:  # of what is said after the layer
            assert shown == near(whole["guess_probabilities"], digits=3)((layer + 1,)), layer
        n_read += len(lengths)
    return n_read


def held_numbers_agree(held: dict[str, Any], tensors: dict[str, Tensor]) -> int:
    """Compare numbers of every tensor that the drawing holds; how many were compared."""
    assert held.keys() == tensors.keys()
    n_read = 0
    for name, expected in tensors.items():
        shape, values = held[name]
        assert shape == list(expected.shape), name
        shown, is_near = torch.tensor(values, dtype=torch.float64).reshape(shape), near(expected)
        for _ in range(HELD if values else 0):
            place = place_in(CHOICE, expected.shape)
            assert float(shown[place]) == is_near(place), f"{name} {place}"
            n_read += 1
    return n_read


def codes_agree(held: dict[str, Any], weights: Tensor, causal: bool) -> int:
    """A code is within half a step of the root of a weight's share of its head's largest one."""
    codes = torch.tensor(held["codes"]).reshape(*weights.shape[:2], -1)
    for _ in range(CODES):
        layer, head, row = place_in(CHOICE, weights.shape[:3])
        column = CHOICE.randrange(row + 1 if causal else weights.shape[3])
        cell = row * (row + 1) // 2 + column if causal else row * weights.shape[3] + column
        largest = held["largest"][layer * weights.shape[1] + head]
        root = math.sqrt(float(weights[layer, head, row, column]) / largest)
        steps = int(codes[layer, head, cell])
        place = f"L{layer}H{head} [{row}, {column}]"
        # a root that lies between two steps may be rounded either way
        assert steps == pytest.approx(root * held["levels"], abs=0.5 + 1e-3), place
    return CODES


def with_probabilities(whole: dict[str, Any]) -> dict[str, Any]:
    """The numbers of the whole picture, with the bars of the next tokens at temperature 1."""
    if "log_sums" not in whole:
        return whole
    shape, logits = whole["next_logits"]
    _, log_sums = whole["log_sums"]
    shares = [math.exp(logit - log_sums[AT_1]) for logit in logits]
    others = {name: numbers for name, numbers in whole.items() if name != "log_sums"}
    return {**others, "next_probabilities": [shape, shares]}


@pytest.mark.parametrize("name", [DECODER, ENCODER, RANDOM_GPT2])
def test_random_numbers_of_every_kind_are_those_of_the_tensors(
    name: str,
    page: Page,
    site: Site,
    tmp_path: Path,
    fresh_site: Callable[..., Server],
    monkeypatch: pytest.MonkeyPatch,
):
    if name == RANDOM_GPT2:
        save_random_gpt2(tmp_path)
        monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path))
        site = fresh_site(ATTENTION_LAB_MODELS=str(tmp_path))
    CHOICE.seed(name)
    model = pretrained.load(name)
    core, config = model.core, model.core.config
    ids = torch.tensor([model.tokenizer.encode(TEXT).ids])
    layer, head = place_in(CHOICE, (config.n_layers, config.n_heads))
    with torch.inference_mode():
        whole, opened = of_the_whole(core, ids), of_a_head(core, ids, layer, head)
        weights = torch.stack([record.weights[0] for record in core(ids, record=True).records])

    values = {"text": TEXT, "model": name, "layer": layer, "head": head}
    values["at"] = f"head weights {layer} {head} 0 0 0 -1"
    query = urlencode({f"one_pass_{key}": value for key, value in values.items()})
    open_page(page, site, f"/one-pass?{query}", "One pass")
    picture = page.locator("figure.one-pass canvas")
    at_rest(picture, "head")
    held = picture.evaluate(HOLDS)
    n_read = held_numbers_agree(with_probabilities(held["whole"]), whole)
    n_read += held_numbers_agree(held["opened"], opened)
    n_read += codes_agree(held, weights, config.causal)
    n_read += cells_are_read(picture, opened, layer, head)
    press(picture, "Escape", "Escape")
    at_rest(picture, "whole")
    n_read += lengths_are_read(picture, whole)
    assert n_read >= LEAST_VALUES
