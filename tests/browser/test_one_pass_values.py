"""Compare numbers in the picture of one pass with an independent computation.

The test samples everything in the picture, for three models: curves with their heads, dots, words,
layers, next words, their logit shares, and cells of every matrix. It reads them by pointer and
keyboard, as a visitor does, and compares them with loops over the recorded pass that don't use
`attention_core.analysis`.
"""

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import torch
from playwright.sync_api import Locator, Page, expect
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel

import pretrained
from attention_core import Transformer
from attention_core.model.block import LayerRecord
from benchmarks.browser import Server, Site
from tests.helpers.browser import parse_number, plain, press
from tests.helpers.bundled_models import DECODER, ENCODER
from tests.helpers.pass_figure import SPOT, open_picture, visible_level
from tests.helpers.reference_models import enlarge
from tests.helpers.visitors import wait_until_settled

TEXT = "Nine grey geese fly over the lake before the storm"
RANDOM_GPT2 = "random-gpt2"  # unlike SmolLM2, it has LayerNorm and projections with biases
MATRICES = ("q", "k", "scores", "scaled", "weights", "v", "context", "added")
STRIPS = (
    *("input", "attention_reads", "attention_sum", "mlp_reads", "mlp_output", "output"),
    "attention",
)
N_STRIP, N_NEURONS, N_DRAWN, N_HEADS_NAMED = 16, 8, 7, 3
LEAST_SHARE = 0.015  # smaller shares aren't drawn at all
MOST_DETAIL = 6  # the level at which all curves are drawn
WORDS, CURVES, LAYERS, DOTS, WHY, CELLS, HELD, CODES = 5, 6, 3, 15, 3, 5, 2, 12
LEAST_VALUES = 200  # per model
# The site runs the model in another process, which may add up products in a different order. The
# error is about 1e-7 of the largest numbers, and subtracting lengths amplifies it.
SLACK = 1e-4
CHOICE = random.Random()
NUMBER = r"((?:less than |more than )?[-−\d.∞]+(?: × 10[⁻⁰-⁹¹²³]+)?%?)"

# What to read after each step: a key press or a point in the picture.
READINGS = f"""
(canvas, steps) => steps.map(([what, ...at]) => {{
  const spot = {SPOT.strip()};
  if (what === "key") canvas.dispatchEvent(new KeyboardEvent("keydown", {{ key: at[0] }}));
  else {{
    const {{ left, top }} = canvas.getBoundingClientRect(), [x, y] = spot(canvas, [what, ...at]);
    const place = {{ clientX: left + x, clientY: top + y, pointerType: "mouse" }};
    canvas.dispatchEvent(new PointerEvent("pointermove", place));
  }}
  return canvas.closest("figure").querySelector(".readout").textContent;
}})
"""

# Every row of the panel, the stated total of the shares, and their actual total.
PANEL = """
(panel) => ({
  rows: [...panel.querySelectorAll(".shares li")].map((row) =>
    [".part", ".value"].map((part) => row.querySelector(part).textContent)),
  says: panel.querySelector(".why-sum").textContent,
  sum: Number(panel.dataset.sum),
})
"""

# Everything in an opened layer and head, and the weights of all heads as codes.
HOLDS = """
async (canvas) => {
  const { map } = canvas.closest("figure").lastDrawn;
  const opened = window.attentionLabOpened.get(map.picture);
  const stream = new Blob([map.body]).stream().pipeThrough(new DecompressionStream("deflate"));
  const codes = new Uint8Array(await new Response(stream).arrayBuffer());
  const lists = (numbers) => Object.fromEntries(
    Object.entries(numbers).map(([name, { shape, values }]) => [name, [shape, [...values]]]));
  return {
    opened: lists(opened.numbers), codes: [...codes],
    ...{ levels: map.levels, largest: map.largest },
  };
}
"""


def save_random_gpt2(folder: Path) -> None:
    """Save a random model with GPT-2's architecture: 3 layers, 4 heads, head size 6."""
    sizes = {"n_positions": 31, "n_embd": 24, "n_layer": 3, "n_head": 4, "n_inner": 52}
    enlarge(GPT2LMHeadModel(GPT2Config(**sizes))).save_pretrained(folder / RANDOM_GPT2)


# ---- expected numbers


def contribution(source: Tensor, total: Tensor) -> float:
    """Return how much closer a part brings a vector to the result, in L1 distance."""
    return max(0.0, float(total.abs().sum() - (total - source).abs().sum()))


@dataclass
class ExpectedPass:
    """The expected values for a text, computed from a recorded forward pass."""

    core: Transformer
    ids: list[int]

    def __post_init__(self) -> None:
        with torch.inference_mode():
            output = self.core(torch.tensor([self.ids]), record=True)
        self.layers: tuple[LayerRecord, ...] = output.layers
        self.states = [state[0].double() for state in output.hidden_states]
        self.logits = output.logits[0, -1].double() if self.core.config.causal else None
        self._curves: dict[tuple[int, int], list[float]] = {}

    @property
    def n_tokens(self) -> int:
        return len(self.ids)

    @cached_property
    def out_weights(self) -> list[Tensor]:
        """Return W_O of each layer, split by head: (H, D, C)."""
        size = self.core.config.d_model, self.core.config.n_heads
        return [
            block.attention.out_weight().detach().double().view(size[1], -1, size[0])
            for block in self.core.blocks
        ]

    def head_output(self, layer: int, head: int, query: int, key: int) -> Tensor:
        """Return what a head adds to the query's vector from the key: weight * v @ W_O, (C)."""
        record = self.layers[layer].attention
        kv_head = head // (record.q.shape[1] // record.v.shape[1])
        weight, value = record.weights[0, head, query, key], record.v[0, kv_head, key]
        return float(weight) * (value.double() @ self.out_weights[layer][head])

    def curves(self, layer: int, query: int) -> list[float]:
        """Return the share of every key in a token's update."""
        if (layer, query) not in self._curves:
            y = self.layers[layer].attention_sum[0, query].double()
            heads = range(self.core.config.n_heads)
            parts = [
                contribution(sum(self.head_output(layer, head, query, key) for head in heads), y)  # type: ignore[arg-type]
                for key in range(self.n_tokens)
            ]
            total = sum(parts) + contribution(self.layers[layer].input[0, query].double(), y)
            self._curves[layer, query] = [part / total if total else 0.0 for part in parts]
        return self._curves[layer, query]

    def carriers(self, layer: int, query: int, key: int) -> list[float]:
        """Return the share of every head in a curve."""
        y = self.layers[layer].attention_sum[0, query].double()
        heads = range(self.core.config.n_heads)
        parts = [contribution(self.head_output(layer, head, query, key), y) for head in heads]
        return [part / sum(parts) if sum(parts) else 0.0 for part in parts]

    def dot(self, layer: int, token: int) -> float:
        """Return the share of the feed-forward network in a token's vector after it."""
        record, pre = self.layers[layer], self.core.config.norm_order == "pre"
        stream = (record.attention_sum if pre else record.mlp_reads)[0, token].double()
        network = record.mlp_output[0, token].double()
        parts = [contribution(part, stream + network) for part in (network, stream)]
        return parts[0] / sum(parts) if sum(parts) else 0.0

    def top_probability(self, layer: int) -> float:
        """Return the probability of the most likely next token if the model stops after a layer."""
        norm, state = self.core.final_norm, self.states[layer + 1][-1].float()
        assert norm is not None
        with torch.inference_mode():
            logits = norm(state) @ self.core.unembedding
        return float(logits.softmax(dim=-1).max())

    def share(self, vector: Tensor, token_id: int) -> float:
        """Return what a part adds to a logit, with the last norm's scale fixed."""
        norm, last = self.core.final_norm, self.states[-1][-1]
        assert norm is not None
        if isinstance(norm, nn.LayerNorm):
            vector = vector - vector.mean()
            scale = 1 / math.sqrt(float(last.var(unbiased=False)) + norm.eps)
        else:
            scale = 1 / math.sqrt(float(last.square().mean()) + norm.eps)
        column = self.core.unembedding[:, token_id].detach().double()
        return float((scale * vector * norm.weight.detach().double()) @ column)

    def shares(self, token_id: int) -> dict[str, float]:
        """Return each part's share of a logit, by the part's name in the panel."""
        parts, biases = {}, 0.0
        for number, layer in enumerate(self.layers):
            context = layer.attention.context[0, :, -1].double()  # (H, D)
            for head in range(self.core.config.n_heads):
                added = context[head] @ self.out_weights[number][head]
                parts[f"L{number}H{head}"] = self.share(added, token_id)
            network = layer.mlp_output[0, -1].double()
            parts[f"feed-forward, layer {number}"] = self.share(network, token_id)
            bias = self.core.blocks[number].attention.out.bias
            if bias is not None:
                biases += self.share(bias.detach().double(), token_id)
        parts["token embedding"] = self.share(self.states[0][-1], token_id)
        parts["attention biases"] = biases
        if (bias := getattr(self.core.final_norm, "bias", None)) is not None:
            column = self.core.unembedding[:, token_id].detach().double()
            parts["bias of the last norm"] = float(bias.detach().double() @ column)
        return parts

    def reads(self, layer: int, head: int, token_id: int) -> list[float]:
        """Return a head's share of a logit, split by key."""
        last = self.n_tokens - 1
        return [
            self.share(self.head_output(layer, head, last, key), token_id)
            for key in range(self.n_tokens)
        ]


# ---- displayed numbers


def agrees(displayed: str, expected: float, digits: int, slack: float = SLACK) -> bool:
    """Check that a rounded number or percentage matches the expected one to this many digits."""
    if displayed.startswith("less than"):
        return 0 < expected < 1.01 * parse_number(displayed.split()[-1].rstrip("%")) / 100
    if displayed.startswith("more than"):
        return 0.995 - SLACK <= expected <= 1 + SLACK
    if displayed.endswith("%"):
        expected, slack = 100 * expected, 100 * slack
        digits = 3 if displayed == "100%" else 2
    number = parse_number(displayed.rstrip("%").replace("∞", "inf"))
    if not math.isfinite(number):
        return number == expected
    half = 0.5 * 10 ** (math.floor(math.log10(abs(number))) - digits + 1) if number else 0.0
    return abs(number - expected) <= half * (1 + 1e-6) + slack * max(abs(expected), 1e-3)


def readings(picture: Locator, steps: list[tuple[Any, ...]]) -> list[str]:
    """Return the readout after each key press and at each point."""
    result: list[str] = picture.evaluate(READINGS, [list(step) for step in steps])
    return [plain(text) for text in result]


def match_groups(pattern: str, text: str) -> tuple[str, ...]:
    result = re.fullmatch(pattern, text)
    assert result, f"{text!r} was read instead of {pattern!r}"
    return result.groups()


@dataclass
class PictureReader:
    """Reads the whole picture and compares it. `values` counts the comparisons."""

    picture: Locator
    expected: ExpectedPass
    values: int = 0

    def __post_init__(self) -> None:
        self.labels: list[str] = self.picture.evaluate(
            "canvas => canvas.closest('figure').lastDrawn.map.labels"
        )
        assert len(self.labels) == self.expected.n_tokens

    def check(self, displayed: str, expected: float, digits: int, what: str) -> None:
        assert agrees(displayed, expected, digits), f"{what}: {displayed} instead of {expected}"
        self.values += 1

    def flow(self) -> None:
        """Read random words with all their curves and some layers, and random dots.

        Everything is read in one go because selecting a word notifies the server, which redraws the
        picture.
        """
        n_tokens, n_layers = self.expected.n_tokens, len(self.expected.layers)
        words = CHOICE.sample(range(1, n_tokens), WORDS)
        layers = CHOICE.sample(range(n_layers), min(LAYERS, n_layers))
        dots = self._drawn_dots()
        dots = CHOICE.sample(dots, min(DOTS, len(dots)))
        steps: list[tuple[Any, ...]] = [("dot", *dot) for dot in dots]
        for token in words:
            steps += [("key", "ArrowUp")] * n_tokens + [("key", "ArrowDown")] * token
            steps += [("key", "ArrowRight")] * (len(self._drawn_curves(token)) + 2)
            steps += [("layer", layer) for layer in layers]
        texts = iter(readings(self.picture, steps))
        self._wait_until_sent(rf"\+{words[-1]}\+-1\+\d\+-1")
        for dot in dots:
            self._dot(*dot, next(texts))
        for token in words:
            self._word(token, list(islice(texts, n_tokens + token))[-1])
            self._curves(token, list(islice(texts, len(self._drawn_curves(token)) + 2)))
            for layer in layers:
                self._layer(layer, token, next(texts))

    def _wait_until_sent(self, end: str) -> None:
        """Wait until the server has received a location with this ending."""
        page = self.picture.page
        expect(page).to_have_url(re.compile(rf"one_pass_at=[^&]*{end}(&|$)"))
        wait_until_settled(page)

    def _drawn_dots(self) -> list[tuple[int, int]]:
        """Return the layer and token of every dot that is certain to be drawn."""
        return [
            (layer, token)
            for layer in range(len(self.expected.layers))
            for token in range(self.expected.n_tokens)
            if self.expected.dot(layer, token) >= LEAST_SHARE * (1 + SLACK)
        ]

    def _drawn_curves(self, token: int) -> dict[tuple[int, int], float]:
        """Return the share of every drawn curve into a word, by layer and key."""
        return {
            (layer, key): share
            for layer in range(len(self.expected.layers))
            for key, share in enumerate(self.expected.curves(layer, token))
            if key != token and share >= LEAST_SHARE
        }

    def _strongest(self, token: int) -> dict[int, tuple[float, int]]:
        """Return the largest share that the word takes from each other token, and its layer."""
        results = {}
        for key in range(self.expected.n_tokens):
            shares = [
                (self.expected.curves(layer, token)[key], layer)
                for layer in range(len(self.expected.layers))
            ]
            if key != token and max(shares)[0] >= LEAST_SHARE:
                results[key] = max(shares)
        return results

    def _word(self, token: int, text: str) -> None:
        strongest = self._strongest(token)
        if not strongest:
            assert "No curve this strong" in text
            return
        looks = re.escape(f"“{self.labels[token]}” gets the most from ")
        (listed,) = match_groups(rf"{looks}(.*)\.", text)
        result = re.findall(r"“(.*?)” \((.*?%) in layer (\d+)\)", listed)
        assert len(result) == min(len(strongest), 3)
        in_order = sorted(strongest.values(), reverse=True)
        for (label, share, layer), (most, _) in zip(result, in_order, strict=False):
            own = strongest[self.labels.index(label)]
            assert own[0] == pytest.approx(most, rel=SLACK)
            assert int(layer) == own[1] or self.expected.curves(int(layer), token)[
                self.labels.index(label)
            ] == pytest.approx(own[0], rel=SLACK)
            self.check(share, own[0], 2, text)

    def _curves(self, token: int, texts: list[str]) -> None:
        """Check that all curves into a word are drawn, and some of them with their heads."""
        drawn = self._drawn_curves(token)
        if not drawn:
            return
        looks, result = re.escape(f"” → “{self.labels[token]}”"), {}
        for text in texts:
            pattern = rf"Layer (\d+): “(.*){looks}, {NUMBER} of the update\.(.*)"
            layer, label, share, carried = match_groups(pattern, text)
            result[int(layer), self.labels.index(label)] = (share, carried)
        for layer, key in result.keys() ^ drawn.keys():  # only curves at the threshold may differ
            share_there = self.expected.curves(layer, token)[key]
            assert share_there == pytest.approx(LEAST_SHARE, rel=SLACK)
        for place in CHOICE.sample(sorted(result), min(CURVES, len(result))):
            expected = self.expected.curves(place[0], token)[place[1]]
            self._curve(place[0], token, place[1], expected, *result[place])

    def _curve(
        self, layer: int, query: int, key: int, expected: float, share: str, carried: str
    ) -> None:
        what = f"layer {layer}, {key} → {query}"
        self.check(share, expected, 2, what)
        heads = re.findall(r"L(\d+)H(\d+) \((.*?%)\)", carried)
        carriers = self.expected.carriers(layer, query, key)
        assert len(heads) == min(N_HEADS_NAMED, sum(part > 0 for part in carriers))
        in_order = sorted(carriers, reverse=True)
        for (at_layer, head, part), most in zip(heads, in_order, strict=False):
            assert int(at_layer) == layer
            assert carriers[int(head)] == pytest.approx(most, rel=SLACK, abs=SLACK)
            self.check(part, carriers[int(head)], 2, f"{what}, head {head}")

    def _layer(self, layer: int, token: int, text: str) -> None:
        record, label = self.expected.layers[layer], re.escape(self.labels[token])
        pattern = (
            rf"Layer {layer} at “{label}”: attention adds a vector of length {NUMBER} and the "
            rf"feed-forward network one of length {NUMBER} to a vector of length {NUMBER}\.(.*)"
        )
        *lengths, then = match_groups(pattern, text)
        attention = record.attention.output
        assert attention is not None
        vectors = (attention[0], record.mlp_output[0], self.expected.states[layer])
        for displayed, vector in zip(lengths, vectors, strict=True):
            self.check(displayed, float(vector[token].norm()), 3, text)
        if self.expected.logits is not None:
            (sure,) = match_groups(
                rf" If the model stopped here, “.*” would come next \({NUMBER}\)\.", then
            )
            self.check(sure, self.expected.top_probability(layer), 2, text)

    def _dot(self, layer: int, token: int, text: str) -> None:
        token_label = re.escape(f"“{self.labels[token]}”")
        end = "comes from the feed-forward network"
        (displayed,) = match_groups(
            rf"Layer {layer}: {NUMBER} of the update of {token_label} {end}\.", text
        )
        self.check(displayed, self.expected.dot(layer, token), 2, text)

    def next_words(self) -> list[int]:
        """Check the bars before any word is selected; return their token ids, most likely first."""
        logits = self.expected.logits
        assert logits is not None
        likeliest = logits.softmax(dim=-1).topk(N_DRAWN)
        for choice, probability in enumerate(likeliest.values.tolist()):
            [text] = readings(self.picture, [("item", f"bar {choice}", 0.5, 0.5)])
            (displayed,) = match_groups(
                rf"The model gives “.*” a probability of {NUMBER}\. .*", text
            )
            self.check(displayed, probability, 2, text)
        return [int(number) for number in likeliest.indices]

    def explanations(self, ids: list[int]) -> None:
        """Check the panel of some next words, alone and compared with others."""
        panel = self.picture.page.locator("figure.one-pass .why")
        press(self.picture.page.locator("figure.one-pass .explain"), "Enter")
        for choice in CHOICE.sample(range(N_DRAWN), WHY):
            panel.locator(".why-word").select_option(str(choice))
            self._wait_until_sent(rf"\+{choice}")
            panel.locator(".why-other").select_option("-1")
            self._explanation(panel, self.expected.shares(ids[choice]), ids[choice])
            other = CHOICE.choice([another for another in range(N_DRAWN) if another != choice])
            panel.locator(".why-other").select_option(str(other))
            less = self.expected.shares(ids[other])
            lead = {
                name: part - less[name] for name, part in self.expected.shares(ids[choice]).items()
            }
            self._explanation(panel, lead)

    def _explanation(
        self, panel: Locator, shares: dict[str, float], token_id: int | None = None
    ) -> None:
        """token_id: the word, if it isn't compared with another."""
        result = panel.evaluate(PANEL)
        total, largest = sum(shares.values()), max(map(abs, shares.values()))
        if token_id is not None:
            assert self.expected.logits is not None
            assert total == pytest.approx(
                float(self.expected.logits[token_id]), abs=SLACK * largest
            )
        assert result["sum"] == pytest.approx(total, abs=SLACK * largest)
        self.check(plain(result["says"]).split(": ")[-1].rstrip("."), total, 4, result["says"])
        left, sum_of_rows, rounded = dict(shares), 0.0, 0.0
        for name, value in result["rows"]:
            part, _, label = plain(name).partition(" reads ")
            if " other " in part:
                count, kind = part.split(" other ")
                others = [each for each in left if _kind(each) == kind]
                assert len(others) == int(count)
                expected = sum(left.pop(each) for each in others)
            else:
                expected = left.pop(part)
            assert value.startswith("+") == (expected > 0)
            number = parse_number(value.lstrip("+"))
            half = 0.5 * 10 ** (math.floor(math.log10(abs(number))) - 2)
            assert abs(number - expected) <= half * (1 + 1e-6) + SLACK * largest, name
            self.values += 1
            sum_of_rows, rounded = sum_of_rows + number, rounded + half
            if label and token_id is not None:
                self._read(part, label.strip("“”"), expected, token_id)
        assert all(part == 0 for part in left.values())
        assert sum_of_rows == pytest.approx(result["sum"], abs=rounded + SLACK * largest)

    def _read(self, part: str, label: str, share: float, token_id: int) -> None:
        """Check that the word a head reads most from has the largest part of its share."""
        layer, head = map(int, match_groups(r"L(\d+)H(\d+)", part))
        by_key = self.expected.reads(layer, head, token_id)
        most = max(by_key) if share > 0 else min(by_key)
        assert by_key[self.labels.index(label)] == pytest.approx(most, rel=SLACK)
        self.values += 1


def _kind(part: str) -> str:
    if part.startswith("feed-forward"):
        return "feed-forward networks"
    return "heads" if re.fullmatch(r"L\d+H\d+", part) else ""


# ---- an open head


def strip(vectors: Tensor) -> Tensor:
    return vectors[..., :N_STRIP]


def expected_head_tensors(expected: ExpectedPass, number: int, head: int) -> dict[str, Tensor]:
    """Return the tensors that an opened layer and head display."""
    layer, mlp = expected.layers[number], expected.core.blocks[number].mlp
    record, out_weight = layer.attention, expected.out_weights[number][head].float()
    kv_head = head // (record.q.shape[1] // record.k.shape[1])
    results = {
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
        results[f"strip {name}"] = strip(vectors[0])
        results[f"norm {name}"] = vectors[0].norm(dim=-1)
    hidden = layer.mlp_hidden[0]
    written_by = hidden.abs() * mlp.down.matrix.norm(dim=1)
    results["neurons"] = written_by.argsort(dim=-1, descending=True)[:, :N_NEURONS]
    results["activations"] = hidden.gather(-1, results["neurons"])
    results["written"] = written_by.gather(-1, results["neurons"])
    return results


def random_index(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(CHOICE.randrange(size) for size in shape)


def check_cells(reader: PictureReader, head_tensors: dict[str, Tensor]) -> None:
    """Point at cells of every matrix of an open head."""
    for matrix in MATRICES:
        tensor = head_tensors[matrix]
        shape, finite = tensor.shape, tensor[tensor.isfinite()]
        for _ in range(CELLS):
            row, column = random_index(shape)
            across, down = (column + 0.5) / shape[1], (row + 0.5) / shape[0]
            [text] = readings(reader.picture, [("item", f"step {matrix}", across, down)])
            label, squared = (
                re.escape(reader.labels[row]),
                matrix in ("scores", "scaled", "weights"),
            )
            begin = (
                rf"“{label}” → “{re.escape(reader.labels[column])}”"
                if squared
                else rf"Element {column} of the [\w ]+ of “{label}”"
            )
            (displayed,) = match_groups(rf"{begin}: {NUMBER}(?: = .*)?", text)
            value = float(head_tensors[matrix][row, column])
            near = agrees(displayed, value, 4, slack=1e-5)
            # if terms nearly cancel, the error is that of the large terms
            assert near or abs(parse_number(displayed) - value) <= 1e-6 * float(
                finite.abs().max()
            ), text
            reader.values += 1


def check_stored_numbers(
    reader: PictureReader, stored: dict[str, Any], tensors: dict[str, Tensor]
) -> None:
    """Compare every tensor that the drawing stores as float32."""
    assert stored.keys() == tensors.keys()
    for name, expected in tensors.items():
        shape, values = stored[name]
        assert shape == list(expected.shape), name
        displayed = torch.tensor(values, dtype=torch.float64).reshape(shape)
        largest = float(expected[expected.isfinite()].abs().max())
        for place in [random_index(tuple(expected.shape)) for _ in range(HELD)]:
            near = pytest.approx(float(expected[place]), rel=1e-5, abs=1e-6 * largest)
            assert float(displayed[place]) == near, f"{name} {place}"
            reader.values += 1


def check_codes(reader: PictureReader, stored: dict[str, Any]) -> None:
    """A code is within half a step of the root of a weight's share of its head's largest weight."""
    weights = torch.stack([layer.attention.weights[0] for layer in reader.expected.layers])
    codes = torch.tensor(stored["codes"]).reshape(*weights.shape[:2], -1)
    causal = reader.expected.core.config.causal
    for _ in range(CODES):
        layer, head, row = random_index(tuple(weights.shape[:3]))
        column = CHOICE.randrange(row + 1 if causal else weights.shape[3])
        cell = row * (row + 1) // 2 + column if causal else row * weights.shape[3] + column
        largest = stored["largest"][layer * weights.shape[1] + head]
        root = math.sqrt(float(weights[layer, head, row, column]) / largest)
        place = f"L{layer}H{head} [{row}, {column}]"
        # a root halfway between two steps may be rounded either way
        assert int(codes[layer, head, cell]) == pytest.approx(
            root * stored["levels"], abs=0.5 + 1e-3
        ), place
        reader.values += 1


@pytest.mark.parametrize("name", [DECODER, ENCODER, RANDOM_GPT2])
def test_random_numbers_match_the_model(
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
    expected = ExpectedPass(model.core, list(model.tokenizer.encode(TEXT).ids))
    layer, head = random_index((model.core.config.n_layers, model.core.config.n_heads))

    def link(level: str) -> str:
        place = f"{level} weights {layer} {head} 0 0 0 -1 {MOST_DETAIL} -1"
        parameters = {"text": TEXT, "model": name, "layer": layer, "head": head, "at": place}
        query = urlencode({f"one_pass_{key}": value for key, value in parameters.items()})
        return f"/one-pass?{query}"

    picture = open_picture(page, site, link("whole"))
    visible_level(picture, "whole")
    reader = PictureReader(picture, expected)
    next_ids = [] if expected.logits is None else reader.next_words()
    reader.flow()
    if next_ids:
        reader.explanations(next_ids)
    picture = reader.picture = open_picture(page, site, link("head"))
    visible_level(picture, "head")
    stored, head_tensors = picture.evaluate(HOLDS), expected_head_tensors(expected, layer, head)
    check_stored_numbers(reader, stored["opened"], head_tensors)
    check_codes(reader, stored)
    check_cells(reader, head_tensors)
    assert reader.values >= LEAST_VALUES
