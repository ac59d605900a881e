"""Stored pictures of a few passes, which can be shown before any model is loaded.

`python -m ui.canvas.one_pass.stored` recreates them, and a test compares them with the model.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from serving.one_pass import one_pass
from ui.canvas.one_pass.picture import PassPicture, picture

STORED_MODEL = "smollm2-135m-instruct"
MARY = "When Mary and John went to the store, John gave a drink to"
ROME = "The capital of France is Paris. The capital of Italy is"
ANIMAL = "The animal didn't cross the street because it was too tired"
_FOLDER = Path(__file__).with_name("stored_passes")
STORED = {MARY: "mary", ROME: "rome", ANIMAL: "animal"}  # text -> file name
_HEADER, _CODES = "header", "codes"


def load_stored_picture(name: str, text: str) -> PassPicture | None:
    """The stored picture of this model and text, or None."""
    if name != STORED_MODEL or text not in STORED:
        return None
    with np.load(_FOLDER / f"{STORED[text]}.npz", allow_pickle=False) as file:
        arrays = dict(file)
    header = json.loads(arrays.pop(_HEADER).tobytes())
    return PassPicture(header, codes=arrays.pop(_CODES).tobytes(), numbers=arrays)


def _store() -> None:
    """Write the stored pictures."""
    for text, name in STORED.items():
        made = picture(one_pass(STORED_MODEL, text))
        header = json.dumps(made.header, ensure_ascii=False).encode()
        texts = {_HEADER: header, _CODES: made.codes}
        arrays = {name: np.frombuffer(text, np.uint8) for name, text in texts.items()}
        path = _FOLDER / f"{name}.npz"
        np.savez_compressed(path, allow_pickle=False, **arrays, **made.numbers)


if __name__ == "__main__":
    _store()
