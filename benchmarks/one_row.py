"""One row times a matrix, as in a decode step: `python -m benchmarks.one_row`.

`--rows 8` measures 8 rows instead, as in a decode step of 8 prompts, and `--rows 40 --prompt` the
rows of one prompt. With few rows, most of the time goes into reading the weights once. At the sizes
of GPT-2 124M it compares:

    project         attention_core.speed.products.linear, weight (d_in, d_out)
    F.linear        torch.nn.functional.linear, weight (d_out, d_in)
    x @ w           the plain product, weight (d_in, d_out)

A model's matrices don't fit into a CPU cache. So each timing uses several copies of the weights,
128 MB or more, and reads each of them once.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from attention_core.costs.stopwatch import Samples, interleave, paired_ratio, seconds_of
from attention_core.speed.products import linear
from benchmarks.timing import machine, table

# (d_in, d_out) of the attention output, QKV, MLP up, MLP down and the vocabulary in GPT-2 124M
GPT2_SHAPES = ((768, 768), (768, 2304), (768, 3072), (3072, 768), (768, 50257))
_BYTES_READ = 128_000_000


def measure(
    d_in: int,
    d_out: int,
    *,
    repeats: int,
    bytes_read: int = _BYTES_READ,
    n_rows: int = 1,
    prompt: bool = False,
) -> dict[str, list[float]]:
    """Bytes of weights read per second, by product, one value per repeat.

    prompt: whether the rows are tokens of one prompt rather than one token each of several prompts.
    Raises: RuntimeError if the products disagree.
    """
    n_copies = max(2, -(-bytes_read // (4 * d_in * d_out)))
    generator = torch.Generator().manual_seed(0)
    shape = (1, n_rows, d_in) if prompt else (n_rows, 1, d_in)
    x = torch.randn(shape, generator=generator)
    wide = torch.randn(d_in, d_out, generator=generator)
    tall = wide.t().contiguous()  # (d_out, d_in)
    wides = [wide.clone() for _ in range(n_copies)]
    talls = [tall.clone() for _ in range(n_copies)]
    _check_equal(x, wide, tall)

    def through(product: Callable[[Tensor, Tensor], Tensor], weights: list[Tensor]) -> float:
        def run() -> None:
            for weight in weights:
                product(x, weight)

        with torch.inference_mode():
            return n_copies * 4 * d_in * d_out / seconds_of(run)

    return interleave(
        {
            "project": lambda: through(linear, wides),
            "F.linear": lambda: through(functional.linear, talls),
            "x @ w": lambda: through(torch.matmul, wides),
        },
        repeats=repeats,
        warmups=2,
    )


def _check_equal(x: Tensor, wide: Tensor, tall: Tensor) -> None:
    with torch.inference_mode():  # `project` needs inference mode to use its fast kernels
        results = {
            "project": linear(x, wide),
            "F.linear": functional.linear(x, tall),
            "x @ w": x @ wide,
        }
    exact = (x.double() @ wide.double()).float()
    for name, y in results.items():
        if not torch.allclose(y, exact, rtol=1e-4, atol=1e-3):
            raise RuntimeError(f"{name} gives a different result for {tuple(wide.shape)}")


def main(
    arguments: Sequence[str] | None = None,
    *,
    shapes: Sequence[tuple[int, int]] = GPT2_SHAPES,
    bytes_read: int = _BYTES_READ,
) -> int:
    """Measure every shape and print the table; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.one_row")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--prompt", action="store_true", help="rows are tokens of one prompt")
    options = parser.parse_args(arguments)
    if options.rows < 1:
        parser.error(f"--rows must be at least 1, got {options.rows}")
    rows: list[tuple[str, ...]] = [
        ("d_in x d_out", "project", "F.linear", "x @ w", "project/F.linear", "project/(x @ w)")
    ]
    for d_in, d_out in shapes:
        rates = measure(
            d_in,
            d_out,
            repeats=options.repeats,
            bytes_read=bytes_read,
            n_rows=options.rows,
            prompt=options.prompt,
        )
        rows.append(
            (
                f"{d_in} x {d_out}",
                *(f"{Samples(tuple(rate / 1e9 for rate in rates[name])):.1f}" for name in rates),
                f"{paired_ratio(rates['project'], rates['F.linear']):.2f}",
                f"{paired_ratio(rates['project'], rates['x @ w']):.2f}",
            )
        )
    rows_name = "One row" if options.rows == 1 else f"{options.rows} rows"
    print(
        f"{rows_name} times a matrix: GB/s of weights read, and ratios (above 1: project is faster)"
    )
    print(f"{machine()}; median (min..max) of {options.repeats} interleaved repeats\n")
    print(table(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
