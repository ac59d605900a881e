"""The exercise sheet: its exercises, and its HTML for the page, for printing and for a file."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from html import escape
from pathlib import Path

from pages.teaching.exercise_sheet import by_hand, from_model, sizes
from pages.teaching.exercise_sheet.exercise import Exercise, Table
from serving import runs
from serving.limits import MAX_SHEET_TOKENS
from serving.runs import Run
from ui.canvas import component
from ui.export import html_file
from ui.text.formatting import plural
from ui.text.isolated import isolated

MIN_TOKENS = 3  # shorter sentences leave nothing to calculate
NAME, FILE = "Exercise sheet: attention", "exercise_sheet.html"
STYLE = Path(__file__).with_name("sheet.css")
_SCALE = Path(component.__file__).parent / "shared" / "scale.css"

# label in the settings -> function that makes the exercise
KINDS: dict[str, Callable[[Run, int], Exercise]] = {
    "tokens": lambda run, variant: from_model.tokens(run),
    "scores": lambda run, variant: by_hand.scores(_too_few_note(run), variant),
    "softmax": lambda run, variant: by_hand.softmax(_too_few_note(run), variant),
    "mask": lambda run, variant: by_hand.mask(_too_few_note(run), variant),
    "context": lambda run, variant: by_hand.context(_too_few_note(run), variant),
    "a real map": from_model.read_map,
    "shapes": lambda run, variant: sizes.shapes(variant),
    "KV cache": lambda run, variant: sizes.cache(variant),
}


@dataclass(frozen=True)
class Sheet:
    """The exercises for one sentence. variant: the seed of the random numbers."""

    sentence: str
    model: str
    variant: int
    exercises: tuple[Exercise, ...]


def sheet(model: str, sentence: str, kinds: Collection[str], variant: int) -> Sheet:
    """Make the sheet with the exercises of these kinds, in the order of `KINDS`.

    Raises: OverLimit if the sentence is too long; ValueError if it's too short or a kind is
    unknown; and any error from loading the model.
    """
    if unknown := set(kinds) - set(KINDS):
        raise ValueError(
            f"unknown kinds of exercises: {sorted(unknown)}; choose from {list(KINDS)}"
        )
    run = runs.run(model, sentence, MAX_SHEET_TOKENS, "an exercise sheet")
    if len(run.tokens) < MIN_TOKENS:
        raise ValueError(
            f"Your sentence has only {plural(len(run.tokens), 'token')}, but the sheet needs at "
            f"least {MIN_TOKENS}. Type a longer sentence."
        )
    made = tuple(make(run, variant) for kind, make in KINDS.items() if kind in kinds)
    return Sheet(run.tokens.text, run.title, variant, made)


def _too_few_note(run: Run) -> tuple[str, ...]:
    return from_model.labels(run)[: by_hand.N_TOKENS]


def document(printed: Sheet) -> bytes:
    """The sheet as a single HTML file that works offline."""
    style = "".join(file.read_text(encoding="utf-8") for file in (_SCALE, STYLE))
    return html_file.page(NAME, html(printed), (), style=style).encode()


def html(printed: Sheet) -> str:
    """The HTML elements of the sheet: the exercises, then the solutions on separate pages."""
    exercises = "".join(map(_exercise, printed.exercises))
    solutions = "".join(map(_solution, printed.exercises))
    name = "<p class='name'>Name: <span></span> Date: <span></span></p>"
    return (
        '<div class="sheet">'
        f'<section class="exercises">{_head("Exercises", printed)}{name}<ol>{exercises}</ol>'
        f'</section><section class="solutions">{_head("Solutions", printed)}'
        f"<ol>{solutions}</ol></section></div>"
    )


def _head(title: str, printed: Sheet) -> str:
    details = f"Variant {printed.variant}. Model: {printed.model}. Our sentence:"
    return (
        f"<h2>{title}: attention</h2><p>{escape(details)}</p>"
        f"<blockquote>{escape(isolated(printed.sentence))}</blockquote>"
    )


def _exercise(exercise: Exercise) -> str:
    empty = "".join(_table(table.empty(), "asked") for table in exercise.answer_tables)
    lines = '<div class="line"></div>' * exercise.n_lines
    return f"<li><h3>{escape(exercise.title)}</h3>{_task(exercise)}{empty}{lines}</li>"


def _solution(exercise: Exercise) -> str:
    steps = "".join(f"<p>{escape(step)}</p>" for step in exercise.steps)
    tables = "".join(map(_table, (*exercise.answer_tables, *exercise.solution_tables)))
    return f"<li><h3>{escape(exercise.title)}</h3>{steps}{tables}</li>"


def _task(exercise: Exercise) -> str:
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in exercise.task)
    return sentences + "".join(map(_table, exercise.data_tables))


def _table(table: Table, kind: str = "given") -> str:
    columns = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.columns)
    corner = f"<th scope='col'>{escape(table.corner)}</th>" if table.corner else "<td></td>"
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        f"{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for name, cells in table.rows
    )
    return (
        f'<table class="{kind}"><thead><tr>{corner}{columns}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )
