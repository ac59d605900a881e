"""The page "Timing" to take away: every step as a file, the charts, and the code."""

from __future__ import annotations

from functools import partial

from pages.kv_cache.timing import charts
from pages.kv_cache.timing.measured import TimingRun
from pretrained.untrained import SHAPES
from ui.export import tables
from ui.export.take_away import Charts, File, pictures

MAX_PROMPT = 200  # characters of it in every row of the file


def files(name: str, compared: dict[str, TimingRun], logarithmic: bool) -> list[File]:
    """Every step of a run, and the charts as they are shown, both made on a click."""
    return [
        File(
            "Every step (CSV)",
            partial(_csv, compared[name]),
            f"timing_run_{name.removeprefix('#')}.csv",
            "text/csv",
        ),
        pictures(partial(drawn, compared, logarithmic), "timing_charts.zip"),
    ]


def _csv(run: TimingRun) -> bytes:
    return tables.csv(run.file(MAX_PROMPT))


def drawn(compared: dict[str, TimingRun], logarithmic: bool) -> Charts:
    """The charts of the page by the names of their files."""
    points, fits = charts.median_steps(compared), charts.fitted_steps(compared)
    return {
        "time_per_token": partial(charts.per_token, points, fits, logarithmic),
        "total_time": partial(charts.cumulated, charts.totals(compared)),
    }


def code(run: TimingRun) -> str:
    """Python that times the core's generation with the same settings."""
    question = run.question
    device = f'device="{run.device.partition(",")[0]}"'  # times are those of the device
    if question.model in SHAPES:
        load = (
            "from pretrained.untrained import untrained\n\n"
            f"model = untrained({question.model!r}, {device})\n"
        )
    else:
        load = f"import pretrained\n\nmodel = pretrained.load({question.model!a}, {device})\n"
    return (
        "from statistics import median\n\n"
        "from attention_core import stream\n"
        "from attention_core.costs.step_times import fit_step_times, in_turns, pays_from\n"
        f"{load}"
        f"ids = model.tokenizer.encode({question.prompt!a}).ids\n"
        f"n_new, repeats = {run.n_new}, {run.repeats}\n\n\n"
        "def cached():\n"
        "    cache = model.core.new_cache(1, len(ids) + n_new - 1)\n"
        "    return stream(model.core, ids, max_new_tokens=n_new, cache=cache)\n\n\n"
        "def uncached():\n"
        "    return stream(model.core, ids, max_new_tokens=n_new)\n\n\n"
        'ways = {"cached": cached, "uncached": uncached}\n'
        "steps = {name: [[] for _ in range(repeats)] for name in ways}\n"
        "for turn in in_turns(ways, repeats=repeats):\n"
        "    if turn.repeat >= 0:  # before that it warms up\n"
        "        steps[turn.name][turn.repeat].append(turn.step)\n"
        "\n\ndef seconds(name):  # of every step: a row for each repeat\n"
        "    return [[step.seconds for step in run] for run in steps[name]]\n\n\n"
        'totals = zip(*([sum(run) for run in seconds(name)] for name in ("uncached", "cached")))\n'
        "medians = {name: [median(step) for step in zip(*seconds(name))] for name in ways}\n"
        "print(median(slow / fast for slow, fast in totals), pays_from(**medians))\n"
        "for name, (run, *_) in steps.items():\n"
        "    print(name, fit_step_times([step.n_keys for step in run[1:]], medians[name][1:]))\n"
    )
