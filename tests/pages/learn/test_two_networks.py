"""Compare the Two networks page to the stored weights, without the page's code."""

import math

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from streamlit.testing.v1 import AppTest
from torch import Tensor
from torch.nn.functional import layer_norm

from benchmarks.browser import ROOT
from pages.learn.two_networks import sections
from pages.learn.two_networks.translation import held_out_results
from tests.helpers.apptest import maps, messages, open_page, plain_tables
from tests.helpers.charts import drawn_charts
from ui.text.formatting import percent

VIEW = "pages/learn/two_networks/page.py"
TEXT, ANSWER = "the 12th of july 1955", "1955-07-12"
SYMBOLS = " ,-0123456789abcdefghijklmnopqrstuvwxyz"
N_HEADS, LAYERS = 4, (0, 1)


class PlainTranslator:
    """A second implementation of the translator, with plain matrix products."""

    def __init__(self) -> None:
        self.tensors = load_file(ROOT / "pages/learn/two_networks/experiment/dates.safetensors")

    def linear(self, x: Tensor, name: str) -> Tensor:
        return x @ self.tensors[f"{name}.weight"].T + self.tensors[f"{name}.bias"]

    def norm(self, x: Tensor, name: str) -> Tensor:
        weight, bias = self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"]
        return layer_norm(x, (x.shape[-1],), weight, bias)

    def attention(
        self, x: Tensor, source: Tensor, name: str, *, causal: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Attention weights (H, T, S) and the update to the residual stream (T, C)."""
        width = x.shape[-1]
        q, k, v = (
            self.linear(of, f"{name}.qkv")
            .split(width, dim=-1)[part]
            .unflatten(-1, (N_HEADS, -1))
            .transpose(0, 1)
            for part, of in enumerate((x, source, source))
        )
        scores = torch.einsum("htd,hsd->hts", q, k) / math.sqrt(q.shape[-1])
        if causal:
            later = torch.ones(scores.shape[-2:]).triu(1) > 0
            scores = scores.masked_fill(later, -torch.inf)
        weights = scores.softmax(-1)
        context = torch.einsum("hts,hsd->thd", weights, v).flatten(1)
        return weights, self.linear(context, f"{name}.out")

    def feed_forward(self, x: Tensor, name: str) -> Tensor:
        inner = self.linear(self.norm(x, f"{name}.feed_norm"), f"{name}.up").clamp(min=0)
        return x + self.linear(inner, f"{name}.down")

    def translate(self, text: str, *, one_vector: bool) -> tuple[str, dict[str, Tensor]]:
        """The translation, and the last pass's attention by kind, (L, H, T, S)."""
        ids = torch.tensor([2 + SYMBOLS.index(symbol) for symbol in text])
        weights_by_kind: dict[str, list[Tensor]] = {"encoder": [], "decoder": [], "cross": []}
        symbols = self.tensors["symbols.weight"]
        x = symbols[ids] + self.tensors["text_positions.weight"][: len(ids)]
        for layer in LAYERS:
            normed = self.norm(x, f"encoder.{layer}.self_norm")
            weights, added = self.attention(normed, normed, f"encoder.{layer}.self_attention")
            weights_by_kind["encoder"].append(weights)
            x = self.feed_forward(x + added, f"encoder.{layer}")
        memory = self.norm(x, "encoder_norm")
        memory = memory.mean(dim=0, keepdim=True) if one_vector else memory
        output_ids = [1]
        while len(output_ids) <= len(ANSWER):
            weights_by_kind["decoder"], weights_by_kind["cross"] = [], []
            y = symbols[torch.tensor(output_ids)]
            y = y + self.tensors["answer_positions.weight"][: len(output_ids)]
            for layer in LAYERS:
                name = f"decoder.{layer}"
                normed = self.norm(y, f"{name}.self_norm")
                weights, added = self.attention(
                    normed, normed, f"{name}.self_attention", causal=True
                )
                weights_by_kind["decoder"].append(weights)
                y = y + added
                normed = self.norm(y, f"{name}.cross_norm")
                weights, added = self.attention(normed, memory, f"{name}.cross_attention")
                weights_by_kind["cross"].append(weights)
                y = self.feed_forward(y + added, name)
            logits = self.linear(self.norm(y, "decoder_norm"), "unembed")
            output_ids.append(int(logits[-1].argmax()))
        answer = "".join(SYMBOLS[number - 2] for number in output_ids[1:])
        return answer, {kind: torch.stack(weights) for kind, weights in weights_by_kind.items()}


@pytest.fixture(scope="module")
def plain_translator() -> PlainTranslator:
    return PlainTranslator()


def page_text(site: AppTest, begin: str) -> str:
    (text,) = [e.value for e in (*site.markdown, *site.text) if e.value.startswith(begin)]
    return str(text)


def test_maps_match_the_stored_weights(site: AppTest, plain_translator: PlainTranslator):
    open_page(
        site,
        VIEW,
        two_networks_text=TEXT,
        two_networks_layer="0",
        two_networks_head="H2",
        two_networks_symbol="6",
        two_networks_part=sections.ATTENTIONS,
    )
    assert not site.exception
    answer, weights = plain_translator.translate(TEXT, one_vector=False)
    assert answer == ANSWER
    assert f"**{ANSWER}**" in page_text(site, "The encoder read")
    heatmaps = maps(site)
    for (_, values), kind in zip(heatmaps, ("cross", "encoder", "decoder", "cross"), strict=True):
        np.testing.assert_allclose(values, weights[kind][0, 2].numpy(), atol=1e-5)
    row = weights["cross"][0, 2, 6]
    (chart,) = drawn_charts(site)
    np.testing.assert_allclose(chart.rows["value"], row.numpy(), atol=1e-5)
    sentence = page_text(site, "To write symbol 6 of its answer, “7”")
    assert f"to symbol {int(row.argmax())}, " in sentence
    assert percent(float(row.max())) in sentence


def test_mean_over_heads_and_missing_layer(site: AppTest, plain_translator: PlainTranslator):
    open_page(site, VIEW, two_networks_text=TEXT, two_networks_layer="9", two_networks_symbol="-4")
    assert not site.exception
    _, weights = plain_translator.translate(TEXT, one_vector=False)
    _, values = maps(site)[0]
    np.testing.assert_allclose(values, weights["cross"][1].mean(dim=0).numpy(), atol=1e-5)


def test_single_vector_bottleneck(site: AppTest, plain_translator: PlainTranslator):
    open_page(site, VIEW, two_networks_text=TEXT, two_networks_part=sections.ONE_VECTOR)
    assert not site.exception
    answer, _ = plain_translator.translate(TEXT, one_vector=True)
    metrics = {metric.label: metric.value for metric in site.metric}
    assert metrics == {"With all states": ANSWER, "With one vector": answer}
    (table,) = plain_tables(site)
    right = table.iloc[:, 1].tolist()
    assert right == list(held_out_results().n_right)
    assert right[0] > 4 * max(1, right[1])


@pytest.mark.parametrize(
    ("text", "problem"),
    [("3rd of may 1998 and a few words more", "36"), ("3. März 1998", "a to z")],
)
def test_unreadable_text_message(site: AppTest, text: str, problem: str):
    open_page(site, VIEW, two_networks_text=text)
    assert not site.exception
    assert any(problem in message for message in messages(site))
    # The footer still appears below a page that stops early.
    assert site.get("page_link")[-1].proto.label.startswith("Next:")


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("31 april 1998", "**no correct answer**"),
        ("29 feb 2023", "**no correct answer**"),
        ("tomorrow", "**not a date**"),
        ("12 july 1655", "**not a date**"),
    ],
)
def test_text_without_a_correct_translation(site: AppTest, text: str, verdict: str):
    open_page(site, VIEW, two_networks_text=text)
    assert verdict in page_text(site, "The encoder read")


def test_output_symbols_have_the_same_row_name_in_both_maps(site: AppTest):
    open_page(site, VIEW, two_networks_part=sections.ATTENTIONS)
    (top, _), _, (decoder, _), (cross, _) = maps(site)
    assert top["rowLabels"] == cross["rowLabels"] == decoder["rowLabels"]
    assert decoder["labels"][1:] == top["rowLabels"][:-1]
