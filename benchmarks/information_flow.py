"""Time of an information flow analysis, compared with its forward pass.

`python -m benchmarks.information_flow` runs the bundled decoder (30 layers of 9 heads) on random
tokens, float32 on the CPU:

    recorded pass       the model, with every tensor recorded
    information flow    the shares of all token pairs in all layers, from these tensors

The exit status is always 0.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import torch

import pretrained
from attention_core import Transformer
from attention_core.analysis.information_flow import information_flow
from attention_core.costs.stopwatch import Samples, interleave, paired_ratio, seconds_of
from benchmarks.timing import machine, table

MODEL = "smollm2-135m-instruct"
TARGET = 2.0  # at most this many times the pass
_PASS, _FLOW = "recorded pass", "information flow"


def measure(model: Transformer, n_tokens: int, repeats: int) -> dict[str, list[float]]:
    """Seconds for the pass and for the analysis, one value per repeat."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(model.config.vocab_size, (1, n_tokens), generator=generator)
    with torch.inference_mode():
        layers = model(ids, record=True).layers
        return interleave(
            {
                _PASS: lambda: seconds_of(lambda: model(ids, record=True)),
                _FLOW: lambda: seconds_of(lambda: information_flow(model, layers)),
            },
            repeats=repeats,
            warmups=2,
        )


def report(seconds: dict[str, list[float]]) -> str:
    """The times as a table, and their ratio compared with the target."""
    rows = [("", "milliseconds")]
    for name, values in seconds.items():
        rows.append((name, f"{Samples(tuple(1000 * value for value in values)):.0f}"))
    times = paired_ratio(seconds[_FLOW], seconds[_PASS])
    verdict = "reached" if times.median <= TARGET else "not reached"
    return (
        f"{table(rows)}\n\n{_FLOW} takes {times:.2f} times as long as the {_PASS}; "
        f"target {TARGET}: {verdict}"
    )


def main(arguments: Sequence[str] | None = None, *, model: Transformer | None = None) -> int:
    """Measure, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.information_flow")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument(
        "--repeats", type=int, default=9, help="repeats of each, after two warm-ups"
    )
    options = parser.parse_args(arguments)
    for name in ("tokens", "repeats"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(options, name)}")
    model = pretrained.load(MODEL, device="cpu").core if model is None else model
    seconds = measure(model, options.tokens, options.repeats)
    print(f"Information flow through {model.config.n_layers} layers, {options.tokens} tokens")
    print(f"{machine()}; median (min..max) of {options.repeats} interleaved repeats\n")
    print(report(seconds))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
