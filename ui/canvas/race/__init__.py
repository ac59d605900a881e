"""A race between two runs that generate the same tokens, replayed with their measured step times.

The text comes from visitors and models, so it reaches the page as text, never as markup.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ui.canvas.component import Canvas

_canvas = Canvas("race")


MESSAGES = (
    "Each row is a run, and time goes from left to right. Each box is a step; its height is the "
    "number of tokens the model processed. Hatched tokens had been processed before."
)


@dataclass(frozen=True)
class Lane:
    """One of the two runs so far.

    text: the generated text. ends: for each step, the length of the text after it, in characters.
    seconds: the duration of each step. tokens: the number of tokens that each step processed;
    except in the first step, all but the newest had been processed before.
    Raises: ValueError if the lists have different lengths.
    """

    name: str
    text: str
    ends: Sequence[int]
    seconds: Sequence[float]
    tokens: Sequence[int]

    def __post_init__(self) -> None:
        """Check that all lists have the same length."""
        lengths = {len(self.ends), len(self.seconds), len(self.tokens)}
        if len(lengths) > 1:
            raise ValueError(f"ends, seconds and tokens have different lengths: {lengths}")


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
    """Draw both lanes and replay the steps so far.

    run: an ID of the run; a new one restarts the replay. n_steps: the requested number of steps.
    over: whether the run has ended. verdict: the text shown below the race when the replay ends.
    """
    _canvas.draw(
        pack(lanes, run=run, prompt=prompt, n_steps=n_steps, over=over, verdict=verdict), key=key
    )


def pack(
    lanes: tuple[Lane, Lane], *, run: str, prompt: str, n_steps: int, over: bool, verdict: str
) -> bytes:
    """Encode the race as JSON for the browser, with times in milliseconds."""
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
    return json.dumps({**fields, "says": MESSAGES, "lanes": rows}).encode()
