"""Stored runs: the one that the page shows first, and one for each switch.

They are stored in `stored_runs.json` with their machine and date. To regenerate them, run
`python -m pages.learn.watch_heads_form.stored`.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pages.learn.watch_heads_form.job import TrainingRun
from pages.learn.watch_heads_form.recording import Moment, TrainingHistory, TrainingSettings
from serving.cores import machine
from serving.limits import MAX_FORMING_STEPS
from ui.canvas.codes import Codes

FILE = Path(__file__).with_name("stored_runs.json")
RUNS = {
    "default settings": TrainingSettings(),
    "the same distance every time": TrainingSettings(one_distance=True),
    "mask off": TrainingSettings(mask=False),
    "scale off": TrainingSettings(scale=False),
    "dropout 0.5": TrainingSettings(dropout=0.5),
}
DEFAULT = "default settings"
# steps with stored maps in the default run, closer together while the heads form
DRAWN = {*range(0, 100, 50), *range(100, 400, 20), *range(400, MAX_FORMING_STEPS + 1, 100)}
NUMBERS = (
    "loss, trained",
    "loss, unseen",
    "loss during generation",
    "previous token",
    "induction",
)
_SCORES = ("previous", "induction", "induction_trained", "next")


@dataclass(frozen=True)
class StoredRuns:
    """All stored runs by their names in `RUNS`, with their machine and date."""

    runs: dict[str, TrainingHistory]
    machine: str
    day: str

    @property
    def table(self) -> pd.DataFrame:
        """One row per run: the step of the drop, and the last measurement."""
        rows = []
        for name, recording in self.runs.items():
            last, drop = recording.moments[-1], recording.drop
            rows.append(
                {
                    "run": name,
                    "loss dropped at step": "never" if drop is None else str(drop.step),
                    "loss, trained": last.loss_trained,
                    "loss, unseen": last.loss_unseen,
                    "loss during generation": last.loss_writing,
                    "previous token": last.best_previous[1],
                    "induction": last.best_induction[1],
                }
            )
        return pd.DataFrame(rows)


@cache
def stored() -> StoredRuns:
    """Load the stored runs."""
    fields = json.loads(FILE.read_text(encoding="utf-8"))
    runs = {name: _recording(run) for name, run in fields["runs"].items()}
    return StoredRuns(runs, fields["machine"], fields["day"])


def to_json(runs: dict[str, TrainingHistory], machine: str, day: str) -> str:
    """Convert runs to JSON: numbers with four decimals, codes as base64."""
    written = {
        name: {"settings": asdict(run.settings), "moments": [_moment_json(m) for m in run.moments]}
        for name, run in runs.items()
    }
    return json.dumps({"machine": machine, "day": day, "runs": written}) + "\n"


def _moment_json(moment: Moment) -> dict[str, Any]:
    fields = {
        "step": moment.step,
        **{
            name: round(getattr(moment, name), 4)
            for name in ("loss_trained", "loss_unseen", "right", "loss_writing")
        },
        # scores that the mask makes impossible are NaN, which JSON doesn't have
        **{
            name: [[None if np.isnan(s) else round(s, 4) for s in row] for row in scores.tolist()]
            for name in _SCORES
            if (scores := getattr(moment, name)) is not None
        },
    }
    if moment.codes is not None:
        codes = moment.codes
        fields["codes"] = {
            "deflated": base64.b64encode(codes.deflated).decode(),
            "levels": codes.levels,
            "largest": [round(number, 5) for number in codes.largest],
            "error": round(codes.error, 6),
        }
    return fields


def _recording(run: dict[str, Any]) -> TrainingHistory:
    moments = []
    for fields in run["moments"]:
        scores = {name: np.array(fields[name], dtype=np.float32) for name in _SCORES}
        codes = fields.get("codes")
        if codes is not None:
            deflated = base64.b64decode(codes["deflated"])
            codes = Codes(deflated, codes["levels"], tuple(codes["largest"]), codes["error"])
        moments.append(Moment(**{**fields, **scores, "codes": codes}))
    return TrainingHistory(TrainingSettings(**run["settings"]), moments)


def _thin_out(recording: TrainingHistory, *, maps: bool) -> TrainingHistory:
    """Cut a run to what is stored: some maps with `maps`, otherwise only the drop and the end."""
    if maps:
        moments = [m if m.step in DRAWN else replace(m, codes=None) for m in recording.moments]
    else:
        ends = {recording.moments[-1].step, *([recording.drop.step] if recording.drop else [])}
        moments = [replace(m, codes=None) for m in recording.moments if m.step in ends]
    return TrainingHistory(recording.settings, moments)


def main() -> None:
    """Train all runs and write the file."""
    import torch

    torch.set_num_threads(1)
    runs = {}
    for name, settings in RUNS.items():
        run = TrainingRun(settings)
        run.begin()
        while run.n_steps < MAX_FORMING_STEPS:
            run.step()
        runs[name] = _thin_out(run.recording, maps=name == DEFAULT)
        print(
            f"{name}: loss {runs[name].moments[-1].loss_unseen:.3f} at unseen distances", flush=True
        )
    day = datetime.now(UTC).date().isoformat()
    FILE.write_text(to_json(runs, machine(), day), encoding="utf-8")


if __name__ == "__main__":
    main()
