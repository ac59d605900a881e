"""The lectures' numbers and the test data folder."""

import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data"
LECTURE_NUMBERS: dict[str, Any] = json.loads(
    (DATA / "lecture_numbers.json").read_text(encoding="utf-8")
)
