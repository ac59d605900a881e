"""Test the data that the race between two generation runs sends to the browser."""

import json

from ui.canvas import race
from ui.canvas.race import Lane


def test_data_for_the_browser():
    first = Lane("with", "<b>a b", (3, 6), (0.25, 0.5), (5, 1))
    second = Lane("without", "x", (1,), (0.125,), (5,))
    fields = {"run": "7", "prompt": "\u202e<i>", "n_steps": 9, "over": False, "verdict": ""}
    sent = json.loads(race.pack((first, second), **fields))
    assert sent == {
        "run": "7",
        "prompt": "\u202e<i>",
        "steps": 9,
        "over": False,
        "verdict": "",
        "says": race.MESSAGES,
        "lanes": [
            {"name": "with", "text": "<b>a b", "steps": [[3, 250.0, 5], [6, 500.0, 1]]},
            {"name": "without", "text": "x", "steps": [[1, 125.0, 5]]},
        ],
    }
