"""The stored run of the small GPT-2 that the page "Timing" shows first.

`stored_run.json` contains the run with its machine and date. To replace it with a run on this
machine, with nothing else running: `python -m pages.kv_cache.timing.stored`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pages.kv_cache.timing.job import TimingJob
from pages.kv_cache.timing.timing_run import TimingRun, TimingSeries
from serving.cores import machine
from serving.jobs import JobQueue
from serving.timing.timed_contenders import FIRST, TimingRequest

FILE = Path(__file__).with_name("stored_run.json")
_ARRAYS = ("seconds", "token_ids", "n_new", "n_keys", "cache_length", "flops")


@cache
def run() -> TimingRun:
    """The stored run."""
    return from_json(FILE.read_text(encoding="utf-8"))


def to_json(measurement: TimingRun) -> str:
    """Convert a run to JSON, with seconds rounded to microseconds."""
    series = {
        name: {
            "cached": one.cached,
            "terms": one.terms,
            **{field: getattr(one, field).tolist() for field in _ARRAYS},
            "seconds": one.seconds.round(6).tolist(),
        }
        for name, one in measurement.series.items()
    }
    fields = {
        "question": asdict(measurement.question),
        "device": measurement.device,
        "ended": measurement.ended.isoformat(timespec="seconds"),
        "n_prompt": measurement.n_prompt,
        "value_bytes": measurement.value_bytes,
        "stopped": measurement.stopped,
        "series": series,
        "largest_difference": measurement.largest_difference,
        "parted": dict(measurement.parted),
    }
    return json.dumps(fields) + "\n"


def from_json(text: str) -> TimingRun:
    """Read a run from the JSON of `to_json`."""
    fields: dict[str, Any] = json.loads(text)
    question = fields["question"]
    return TimingRun(
        **{
            **fields,
            "question": TimingRequest(**{**question, "contenders": tuple(question["contenders"])}),
            "ended": datetime.fromisoformat(fields["ended"]),
            "series": {
                name: TimingSeries(
                    cached=one["cached"],
                    terms=tuple(one["terms"]),
                    **{field: np.array(one[field]) for field in _ARRAYS},
                )
                for name, one in fields["series"].items()
            },
        }
    )


def main() -> None:
    """Measure the page's default request and write the file."""
    job = TimingJob(FIRST)
    JobQueue().put(job)
    while not job.finished.wait(1.0):
        job.keep_alive()
    measurement = job.partial_run()
    if measurement is None or measurement.stopped:
        raise SystemExit(f"The run did not finish: {job.error or job.state}")
    FILE.write_text(
        to_json(replace(measurement, device=f"{measurement.device}, {machine()}")), "utf-8"
    )
    print(f"{FILE}: {measurement.summary}")


if __name__ == "__main__":
    main()
