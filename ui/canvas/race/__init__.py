"""Two generations of the same tokens as a race: each replayed at the milliseconds of its own steps.

All text reaches the page as text, never as markup: visitors and models wrote it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ui.canvas.component import Canvas

_canvas = Canvas("race")


SAYS = (
    "A row is a run; time goes to the right. A box is a step, as high as it ran tokens. "
    "Hatched: run before, and run again."
)


@dataclass(frozen=True)
class Lane:
    """One of the two generations, so far.

    text: what it wrote. ends: for each step, how many characters of the text are written after it.
    seconds: the time that each step took. tokens: how many tokens each step ran; all but the newest
    were run before, except in the first.
    Raises: ValueError for lists of different lengths.
    """

    name: str
    text: str
    ends: Sequence[int]
    seconds: Sequence[float]
    tokens: Sequence[int]

    def __post_init__(self) -> None:
        """Check the lengths."""
        lengths = {len(self.ends), len(self.seconds), len(self.tokens)}
        if len(lengths) > 1:
            raise ValueError(f"ends, seconds and tokens of a lane differ in length: {lengths}")


def race(
    lanes: tuple[Lane, Lane],
    *,
    run: str,
    prompt: str,
    n_steps: int,
    over: bool,
    verdict: str,
    key: str,
) -> None:
    """Draw both lanes, and replay what is known of them.

    run: names the run; another name starts the replay anew. n_steps: how many steps were asked for.
    over: whether no step will follow. verdict: what is written below once the replay is at its end.
    """
    _canvas.draw(
        pack(lanes, run=run, prompt=prompt, n_steps=n_steps, over=over, verdict=verdict), key=key
    )


def pack(
    lanes: tuple[Lane, Lane], *, run: str, prompt: str, n_steps: int, over: bool, verdict: str
) -> bytes:
    """What the browser receives: one JSON text in bytes, times in milliseconds."""
    rows = [
        {
            "name": lane.name,
            "text": lane.text,
            "steps": [
                [end, round(1000 * seconds, 3), tokens]
                for end, seconds, tokens in zip(lane.ends, lane.seconds, lane.tokens, strict=True)
            ],
        }
        for lane in lanes
    ]
    fields = {"run": run, "prompt": prompt, "steps": n_steps, "over": over, "verdict": verdict}
    return json.dumps({**fields, "says": SAYS, "lanes": rows}).encode()
