"""The numbers in the pictures of the glossary. They are stored in a file.

So a picture waits neither for torch nor for a model. `python -m ui.frame.glossary.numbers` writes
the file anew; a test holds it against a new computation.
"""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pretrained.tokenization.tokens import printable
from serving import one_pass
from ui.text.number_text import written

_FILE = Path(__file__).with_name("numbers.json")
_DIGITS = 5  # significant ones, in the file
N_NEXT = 4  # next tokens that are drawn
N_DRAWS = 200  # in the picture of sampling
LENS_LAYERS = (6, 14, 25, 29)  # layers of the logit lens that are drawn

Numbers = dict[str, Any]  # an array as nested lists, or rows of texts, by its name


def computed() -> Numbers:
    """All numbers, computed anew: from the inputs of the lectures, and from the stored pass."""
    numbers: Numbers = _rounded({**_of_the_lectures(), **_of_the_stored_pass(), **_of_formulas()})
    return numbers


@cache
def stored() -> Numbers:
    """All numbers, as the file has them."""
    numbers: Numbers = json.loads(_FILE.read_text(encoding="utf-8"))
    return numbers


def _of_the_lectures() -> Numbers:
    """Attention on the six tokens of the lecture: T = 6 tokens of 3 numbers, head size 2."""
    import torch

    from attention_core import (
        SelfAttentionV2,
        attend,
        causal_mask,
        lecture_inputs,
        mask_scores,
        simple_self_attention,
    )
    from attention_core.speed.int8 import Int8Matrix

    x, words = lecture_inputs.JOURNEY.embeddings, lecture_inputs.JOURNEY.tokens
    scores, weights, context = simple_self_attention(x)
    with torch.no_grad():
        torch.manual_seed(lecture_inputs.SEED_V2)
        layer = SelfAttentionV2(3, 2)
        record = layer.record(x)
        mask = causal_mask(len(x), len(x))
        causal = attend(record.q, record.k, record.v, mask=mask)
        window = attend(record.q, record.k, record.v, mask=causal_mask(len(x), len(x), window=3))
        torch.manual_seed(lecture_inputs.SEED_V1)
        heads = [SelfAttentionV2(3, 2).record(x * 4) for _ in range(2)]  # times 4: maps that differ
        torch.manual_seed(lecture_inputs.SEED_V1)
        dropped = torch.nn.functional.dropout(causal.weights, 0.5)
        normalised = torch.nn.functional.layer_norm(x[1], (3,))
        matrix = layer.W_query.weight.T.contiguous()  # (3, 2)
        int8 = Int8Matrix(matrix)
    two = x[[1, 4], :2]
    cosine = torch.nn.functional.cosine_similarity(two[0], two[1], dim=0)
    masked = mask_scores(record.scores, mask)
    rows = [["weight", "stored", "means"]]
    for place in range(2):
        code = int(int8.codes[0, place])
        weight, means = (written(m[place, 0].item(), ".3f") for m in (matrix, int8.matrix))
        rows.append([weight, str(code), means])
    return {
        "words": list(words),
        "inputs": x.tolist(),
        "one_input": x[1:2].tolist(),
        "one_input_list": x[1].tolist(),
        "normalised": normalised.tolist(),
        "dot_product": [x[1].tolist(), x[2].tolist(), [float(x[1] @ x[2])]],
        "scores": scores[1].tolist(),
        "weights": weights[1].tolist(),
        "looks": {"words": list(words), "from": 1, "weights": weights[1].tolist()},
        "weight_map": weights.tolist(),
        "context": context.tolist(),
        "W_query": matrix.tolist(),
        "queries": record.q.tolist(),
        "one_query": record.q[1:2].tolist(),
        "keys": record.k.tolist(),
        "values": record.v.tolist(),
        "cache": [record.k.tolist(), record.v.tolist()],
        "masked_scores": _with_gaps(masked.tolist()),
        "causal_weights": causal.weights.tolist(),
        "window_weights": window.weights.tolist(),
        "dropped_weights": dropped.tolist(),
        "two_heads": [head.weights.tolist() for head in heads],
        "both_contexts": torch.cat([head.context[1:2] for head in heads], dim=-1).tolist(),
        "two_vectors": two.tolist(),
        "cosine": f"cosine {float(cosine):.2f}",
        "int8": rows,
        "online_softmax": _online(scores[1].tolist()),
    }


def _online(scores: list[float]) -> list[list[str]]:
    """The largest score and the sum of exponentials, behind each two of six scores."""
    rows, largest, total = [["scores", "largest", "sum"]], -math.inf, 0.0
    for first in range(0, len(scores), 2):
        piece = scores[first : first + 2]
        before, largest = largest, max(largest, *piece)
        total *= math.exp(before - largest)
        total += sum(math.exp(score - largest) for score in piece)
        both = (written(number, ".3f") for number in (largest, total))
        rows.append([f"{first} and {first + 1}", *both])
    return rows


def _of_the_stored_pass() -> Numbers:
    """The end of a pass of a real model, which `ui.canvas.one_pass.stored` keeps."""
    import torch

    from attention_core import Sampling, probabilities, sample

    # `app.py` reads the stored numbers before Streamlit can register the picture's component
    from ui.canvas.one_pass.stored import ANIMAL, STORED_MODEL
    from ui.canvas.one_pass.stored import stored as stored_pass

    passed = stored_pass(STORED_MODEL, ANIMAL)
    assert passed is not None
    header, arrays = passed.header, passed.numbers
    likeliest = torch.from_numpy(arrays["next_logits"]).double()
    few = likeliest[:N_NEXT].float()

    def true(temperature: float) -> list[float]:
        """The probabilities of the likeliest tokens, and of all others together."""
        log_sum = arrays["log_sums"][one_pass.TEMPERATURES.index(temperature)]
        known = (likeliest / temperature - float(log_sum)).exp()
        return [*known.tolist(), max(1 - float(known.sum()), 1e-9)]

    logs = torch.tensor(true(1.0)).log()

    def kept(**how: Any) -> list[float]:
        return probabilities(logs, Sampling(temperature=1.0, **how))[:N_NEXT].tolist()

    cold, hot = (torch.softmax(few / temperature, dim=-1) for temperature in (0.5, 2.0))
    divergence = (cold * (cold / hot).log()).sum()
    generator = torch.Generator().manual_seed(0)
    draws = [sample(logs, Sampling(temperature=1.0), generator) for _ in range(N_DRAWS)]
    logits = few.clone().requires_grad_()
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(0))
    (gradient,) = torch.autograd.grad(loss, logits)
    lens = [["layer", "would say"], *([str(at), header["guesses"][at + 1]] for at in LENS_LAYERS)]
    return {
        "tokens": header["labels"][:4],
        "next": header["next"][:N_NEXT],
        "logits": few.tolist(),
        "probabilities": true(1.0)[:N_NEXT],
        "cold": true(0.5)[:N_NEXT],
        "hot": true(2.0)[:N_NEXT],
        "top_k": kept(top_k=2),
        "top_p": kept(top_p=0.75),
        "greedy": probabilities(few, Sampling()).tolist(),
        "few_cold": cold.tolist(),
        "few_hot": hot.tolist(),
        "divergence": f"divergence {float(divergence):.2f}",
        "drawn": [draws.count(token) / N_DRAWS for token in range(N_NEXT)],
        "gradient": gradient.tolist(),
        "logit_lens": lens,
        "stream_lengths": [list(range(31)), arrays["state_norms"][:, -1].tolist()],
        "hidden_states": arrays["leaving"][:6, :8].tolist(),
    }


def _of_formulas() -> Numbers:
    """Curves, positions, and what is drawn from a seed."""
    import torch

    from attention_core.model.layers import ACTIVATIONS
    from attention_core.model.original_transformer import sinusoids
    from attention_core.positions.rotary import rotary_angles
    from pretrained.tokenization.gpt2 import gpt2

    along = torch.linspace(-3, 3, 25)
    cos, sin = rotary_angles(torch.arange(5) / 4, 2, 10_000.0, torch.float32)
    generator = torch.Generator().manual_seed(0)
    query, keys = torch.randn(64, generator=generator), torch.randn(8, 64, generator=generator)
    products = keys @ query
    right = torch.linspace(0.02, 1, 25)
    tenth = torch.tensor(0.1)
    tokenizer = gpt2()
    pieces = tokenizer.encode("attention is all")
    rows = [["token", "number"]]
    rows += [
        [printable(piece), str(id_)] for piece, id_ in zip(pieces.raw, pieces.ids, strict=True)
    ][:3]
    return {
        "gelu": [along.tolist(), ACTIVATIONS["gelu"](along).tolist()],
        "sinusoids": sinusoids(12, 8).tolist(),
        "rotated": torch.stack((cos[:, 0], sin[:, 0]), dim=-1).tolist(),
        "undivided": torch.softmax(products, dim=-1).tolist(),
        "divided": torch.softmax(products / 8, dim=-1).tolist(),
        "loss": [right.tolist(), (-right.log()).tolist()],
        "one_tenth": [
            ["stored in", "what is left"],
            ["float32", f"{tenth.double():.10f}"],
            ["bfloat16", f"{tenth.bfloat16().double():.10f}"],
        ],
        "vocabulary": rows,
    }


def _with_gaps(rows: list[list[float]]) -> list[list[float | None]]:
    """The same with None for minus infinity, which JSON cannot write."""
    return [[number if math.isfinite(number) else None for number in row] for row in rows]


def _rounded(value: Any) -> Any:
    """The same with all numbers at `_DIGITS` significant digits."""
    if isinstance(value, float):
        return float(np.format_float_positional(value, _DIGITS, fractional=False))
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list) else value


if __name__ == "__main__":
    _FILE.write_text(json.dumps(computed(), ensure_ascii=False) + "\n", encoding="utf-8")
