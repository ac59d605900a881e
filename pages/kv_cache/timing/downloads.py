"""Downloads of the page "Timing": all steps, and its code."""

from __future__ import annotations

from functools import partial

from pages.kv_cache.timing.timing_run import TimingRun
from pretrained.untrained import SHAPES
from ui.export import downloads

MAX_PROMPT = 200  # characters of the prompt in each row of the file


def show(name: str, run: TimingRun) -> None:
    """Show the page's file, code and link. name: the run's name, such as "#2"."""
    downloads.panel(
        "timing",
        downloads.csv(
            "All steps",
            partial(run.export_table, MAX_PROMPT),
            f"timing_run_{name.removeprefix('#')}",
        ),
        snippet=snippet(run),
        note="The file contains every step of every repeat.",
    )


def snippet(run: TimingRun) -> str:
    """Python code that times generation in the core with the same settings."""
    question = run.question
    device = f'device="{run.device.partition(",")[0]}"'  # times depend on the device
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
        "from attention_core.costs.step_times import fit_step_times, interleave_steps, break_even\n"
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
        "for turn in interleave_steps(ways, repeats=repeats):\n"
        "    if turn.repeat >= 0:  # before that it warms up\n"
        "        steps[turn.name][turn.repeat].append(turn.step)\n"
        "\n\ndef seconds(name):  # of every step: a row for each repeat\n"
        "    return [[step.seconds for step in run] for run in steps[name]]\n\n\n"
        'totals = zip(*([sum(run) for run in seconds(name)] for name in ("uncached", "cached")))\n'
        "medians = {name: [median(step) for step in zip(*seconds(name))] for name in ways}\n"
        "print(median(slow / fast for slow, fast in totals), break_even(**medians))\n"
        "for name, (run, *_) in steps.items():\n"
        "    print(name, fit_step_times([step.n_keys for step in run[1:]], medians[name][1:]))\n"
    )
