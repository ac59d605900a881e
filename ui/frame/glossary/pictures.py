"""The pictures of the glossary: small SVGs, 160 by 90, that have the colours of the page.

A picture is a pure function of numbers. Colours are variables of the page's style sheet
(`ui/frame/style.css`), so that one drawing serves both themes. Texts are escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from ui.frame.glossary.numbers import Numbers

WIDTH, HEIGHT = 160, 90
LETTER = 6.6  # the width of a letter, about, where it is 12 high
_EDGE, _GAP = 6, 8
_LABELS = 16  # the height that a line of labels takes


def picture(how: dict[str, Any], numbers: Numbers) -> str:
    """The SVG of a term. how: as `terms.toml` writes it; numbers: as `numbers.py` stores them.

    Raises: ValueError for a picture that no function draws, or without words that say what it is.
    """
    given = dict(how)
    draw, says = _DRAWN.get(given.pop("draw", "")), given.pop("says", "")
    if draw is None or not says:
        raise ValueError(f"a picture needs one of {sorted(_DRAWN)} and words, not {how}")
    named = {
        name: numbers[value] if name in _NAMES_OF_NUMBERS else value
        for name, value in given.items()
    }
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(says)}" font-size="12">{draw(**named)}</svg>'
    )


_NAMES_OF_NUMBERS = {"numbers", "beside", "label", "labels"}


def cells(
    numbers: Any,
    colour: str,
    *,
    row: int | None = None,
    faint: bool = False,
    size: bool = False,
    second: str = "",
    parts: int = 1,
    tile: int = 0,
) -> str:
    """One matrix, or two beside each other: a cell for each number, darker for a larger one.

    Numbers below 0 are hollow, None is crossed out. row: framed; faint: all others are pale. size:
    rows and columns are written below. second: the colour of a second matrix. parts: columns are
    cut into so many. tile: lines after so many rows and columns.
    """
    matrices = numbers if isinstance(numbers[0][0], list) else [numbers]
    low = HEIGHT - _EDGE - (_LABELS if size else 0)
    width = (WIDTH - 2 * _EDGE - (len(matrices) - 1) * 2 * _GAP) / len(matrices)
    drawn = []
    for place, matrix in enumerate(matrices):
        n_rows, n_columns = len(matrix), len(matrix[0])
        side = min(width / n_columns, (low - _EDGE) / n_rows, 24)
        wide = min(width / n_columns, side * 1.6)
        left = _EDGE + place * (width + 2 * _GAP) + (width - wide * n_columns) / 2
        top = _EDGE + (low - _EDGE - side * n_rows) / 2
        tone = second if second and place else colour
        largest = max((abs(n) for line in matrix for n in line if n is not None), default=1) or 1
        for i, line in enumerate(matrix):
            pale = faint and i != row
            for j, number in enumerate(line):
                x, y = left + j * wide + 0.5, top + i * side + 0.5
                drawn.append(_cell(x, y, wide - 1, side - 1, number, largest, tone, pale))
        if row is not None:
            drawn.append(_frame(left - 1.5, top + row * side - 1.5, wide * n_columns + 3, side + 3))
        for cut in range(1, parts):
            x = left + wide * n_columns * cut / parts
            drawn.append(_line(x, top - 6, x, top + side * n_rows + 6, dashed=True))
        right, bottom = left + wide * n_columns, top + side * n_rows
        for cut in range(tile, n_rows, tile) if tile else ():
            drawn.append(_line(left - 3, top + cut * side, right + 3, top + cut * side))
            drawn.append(_line(left + cut * wide, top - 3, left + cut * wide, bottom + 3))
        if size:
            drawn.append(_label(f"{n_rows} × {n_columns}", left + wide * n_columns / 2, HEIGHT - 5))
    return "".join(drawn)


def _cell(
    x: float, y: float, wide: float, high: float,
    number: float | None, largest: float, colour: str, pale: bool,
) -> str:  # fmt: skip
    place = f'x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}"'
    if number is None:
        cross = f"M{x:.1f} {y:.1f}l{wide:.1f} {high:.1f}m0 {-high:.1f}l{-wide:.1f} {high:.1f}"
        return f'<path d="{cross}" stroke="currentColor" opacity="0.45"/>'
    share = abs(number) / largest
    tone = f"var(--{colour})"
    if number < 0:
        style = f'fill="none" stroke="{tone}" stroke-opacity="{0.25 + 0.75 * share:.2f}"'
    else:
        style = f'fill="{tone}" fill-opacity="{0.08 + 0.92 * share:.2f}"'
    pallor = ' opacity="0.2"' if pale else ""
    return f"<rect {place} {style}{pallor}/>"


def bars(
    numbers: Sequence[float],
    colour: str,
    *,
    beside: Sequence[float] = (),
    labels: Sequence[str] = (),
    label: str = "",
) -> str:
    """A bar for each number, below the line where it is below 0; in pairs with those `beside`."""
    top, low = _EDGE + (_LABELS if label else 0), HEIGHT - (_LABELS if labels else _EDGE)
    everything = [0.0, *numbers, *beside]
    least, most = min(everything), max(everything)
    unit = (low - top) / (most - least)
    base = top + most * unit
    step = (WIDTH - 2 * _EDGE) / len(numbers)
    wide = min(step * (0.38 if beside else 0.7), 22)
    drawn = [_line(_EDGE, base, WIDTH - _EDGE, base)]
    for place, number in enumerate(numbers):
        middle = _EDGE + (place + 0.5) * step
        pair = [(number, 1.0)] + ([(beside[place], 0.45)] if beside else [])
        for at, (value, opacity) in enumerate(pair):
            x = middle - wide * len(pair) / 2 + at * wide
            y, high = base - max(value, 0) * unit, abs(value) * unit
            drawn.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide - 1:.1f}" height="{high:.1f}" '
                f'fill="var(--{colour})" fill-opacity="{opacity}"/>'
            )
    return "".join([*drawn, _below(labels, step), _label(label, WIDTH / 2, 13)])


def curve(numbers: Sequence[Sequence[float]], colour: str) -> str:
    """The line through points; numbers: their places along, and their heights."""
    along, heights = numbers
    least, most = min(*heights, 0.0), max(heights)
    width, height = WIDTH - 2 * _EDGE, HEIGHT - 2 * _EDGE

    def x(place: float) -> float:
        return _EDGE + (place - along[0]) / (along[-1] - along[0]) * width

    def y(value: float) -> float:
        return _EDGE + (most - value) / (most - least) * height

    points = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in zip(along, heights, strict=True))
    axes = _line(_EDGE, y(0), WIDTH - _EDGE, y(0))
    start = x(0) if along[0] < 0 else _EDGE
    axes += _line(start, _EDGE, start, HEIGHT - _EDGE)
    return (
        f'{axes}<polyline points="{points}" fill="none" stroke="var(--{colour})" stroke-width="3"/>'
    )


def arrows(numbers: Sequence[Sequence[float]], *, label: str = "") -> str:
    """Vectors of two numbers as arrows from one point, the first in the strongest colour."""
    origin_x, origin_y, unit = 36.0, HEIGHT - 12.0, HEIGHT - 24.0
    drawn = []
    for place, (x, y) in enumerate(numbers):
        end_x, end_y = origin_x + x * unit * 1.1, origin_y - y * unit
        tone = "queries" if place == 0 else "keys"
        fades = 1 - 0.6 * place / len(numbers) if len(numbers) > 2 else 1
        drawn.append(_arrow(origin_x, origin_y, end_x, end_y, f"var(--{tone})", fades))
    return "".join([*drawn, _label(label, WIDTH - _EDGE, 30, anchor="end")])


def pieces(
    numbers: Sequence[str] = (),
    *,
    words: Sequence[str] = (),
    dashed: Sequence[int] = (),
    marked: int | None = None,
) -> str:
    """Pieces of a text in boxes, one behind the other."""
    texts = list(numbers or words)
    widths = [len(text) * LETTER + 8 for text in texts]
    shrink = min(1.0, (WIDTH - 2 * _EDGE - 3 * (len(texts) - 1)) / sum(widths))
    x, drawn = (WIDTH - sum(widths) * shrink - 3 * (len(texts) - 1)) / 2, []
    for place, (text, width) in enumerate(zip(texts, widths, strict=True)):
        wide = width * shrink
        tone = "values" if place == marked else "attention"
        fill = 0 if place in dashed else 0.18
        drawn.append(_box(x, 30, wide, 30, text, tone, fill, dashed=place in dashed))
        x += wide + 3
    return "".join(drawn)


def table(numbers: Sequence[Sequence[str]]) -> str:
    """Rows of texts, the first of them the headings."""
    step = (WIDTH - 2 * _EDGE) / len(numbers[0])
    gap = (HEIGHT - 2 * _EDGE) / len(numbers)
    drawn = [_line(_EDGE, _EDGE + gap - 1, WIDTH - _EDGE, _EDGE + gap - 1)]
    for i, row in enumerate(numbers):
        y = _EDGE + (i + 0.5) * gap + 4
        for j, text in enumerate(row):
            drawn.append(_label(text, _EDGE + (j + 0.5) * step, y, opacity=0.75 if i == 0 else 1.0))
    return "".join(drawn)


def flow(
    boxes: Sequence[str],
    *,
    marked: int | None = None,
    colour: str = "attention",
    loop: bool = False,
) -> str:
    """Boxes from the left to the right with arrows between them; loop: and back to the first."""
    gap, wide = 13.0, (WIDTH - 2 * 2 - 13.0 * (len(boxes) - 1)) / len(boxes)
    drawn, y = [], 20.0 if loop else 28.0
    for place, text in enumerate(boxes):
        x = 2 + place * (wide + gap)
        drawn.append(_box(x, y, wide, 32, text, colour, 0.28 if place == marked else 0))
        if place:
            drawn.append(_arrow(x - gap + 1, y + 16, x - 1, y + 16, "currentColor"))
    if loop:
        right, left = WIDTH - 2 - wide / 2, 2 + wide / 2
        drawn.append(f'<path d="M{right} {y + 32}v18H{left}" fill="none" stroke="currentColor"/>')
        drawn.append(_arrow(left, y + 50, left, y + 34, "currentColor"))
    return "".join(drawn)


def tower(boxes: Sequence[str], arrows: bool = True) -> str:
    """Boxes from the top down; where they build on each other, an arrow from each to the next."""
    gap, high = 9.0, (HEIGHT - 2 * 3 - 9.0 * (len(boxes) - 1)) / len(boxes)
    drawn = []
    for place, text in enumerate(boxes):
        y = 3 + place * (high + gap)
        drawn.append(_box(42, y, 76, high, text, "attention", 0.18))
        if place and arrows:
            drawn.append(_arrow(80, y - 1, 80, y - gap + 1, "currentColor"))
    return "".join(drawn)


def sharing(groups: Sequence[int], top: str, bottom: str) -> str:
    """Squares above, squares below, and which of the lower ones each upper one reads."""
    n_lower = max(groups) + 1
    drawn = [_label(top, WIDTH / 2, 12), _label(bottom, WIDTH / 2, HEIGHT - 3)]
    for place, group in enumerate(groups):
        x, below = (place + 0.5) * WIDTH / len(groups), (group + 0.5) * WIDTH / n_lower
        drawn.append(_line(x, 35, below, 56))
        drawn.append(_square(x, 18, "queries"))
    drawn += [_square((group + 0.5) * WIDTH / n_lower, 56, "keys") for group in range(n_lower)]
    return "".join(drawn)


def looks(
    numbers: dict[str, Any] | None = None,
    *,
    words: Sequence[str] = (),
    target: int = 0,
    only: int | None = None,
) -> str:
    """Words in a row, and lines from one to the others as thick as its weights.

    Without numbers all words, or only one of them, look at the `target`.
    """
    texts = numbers["words"] if numbers else words
    step = WIDTH / len(texts)
    drawn = []
    for place in range(len(texts)):
        if numbers:
            ask, answer, thick = numbers["from"], place, numbers["weights"][place] * 24
        else:
            ask, answer, thick = place, target, 2.0 if only in (None, place) else 0.0
        if thick:
            start, end = (ask + 0.5) * step, (answer + 0.5) * step
            drawn.append(
                f'<path d="M{start:.1f} 22C{start:.1f} 45 {end:.1f} 45 {end:.1f} 68" fill="none" '
                f'stroke="var(--attention)" stroke-opacity="0.7" stroke-width="{thick:.1f}"/>'
            )
    for place, text in enumerate(texts):
        x = (place + 0.5) * step
        if not numbers:
            drawn.append(_label(text, x, 16))
        elif place == numbers["from"]:
            drawn.append(_label(text, max(x, len(text) * LETTER / 2), 16))
    return "".join([*drawn, _below(texts, step)])


def products(numbers: Sequence[Sequence[float]]) -> str:
    """Two vectors, the products of their numbers, and the sum."""
    first, second, (total,) = numbers
    drawn = []
    for place, (a, b) in enumerate(zip(first, second, strict=True)):
        y = 17 + place * 20
        drawn.append(_label(f"{a:.2f}", 26, y, colour="queries"))
        drawn.append(_label("×", 50, y))
        drawn.append(_label(f"{b:.2f}", 74, y, colour="keys"))
        drawn.append(_label(f"=  {a * b:.4f}", 120, y))
    drawn.append(_line(98, 63, 146, 63))
    return "".join([*drawn, _label(f"sum  {total:.4f}", 113, 80)])


def _below(labels: Sequence[str], step: float) -> str:
    """Labels below the columns of a picture; where they have no room, the first and the last."""
    y = HEIGHT - 4
    if all(len(label) * LETTER < step for label in labels):
        places = (WIDTH - len(labels) * step) / 2
        return "".join(
            _label(label, places + (at + 0.5) * step, y) for at, label in enumerate(labels)
        )
    first, last = labels[0], labels[-1]
    return _label(first, _EDGE, y, anchor="start") + _label(last, WIDTH - _EDGE, y, anchor="end")


def _label(
    text: str, x: float, y: float, *, anchor: str = "middle", opacity: float = 1, colour: str = ""
) -> str:
    if not text:
        return ""
    line = f'<rect x="{x - 16:.1f}" y="{y + 3:.1f}" width="32" height="2" fill="var(--{colour})"/>'
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor" '
        f'opacity="{opacity}">{escape(text)}</text>{line if colour else ""}'
    )


def _box(
    x: float, y: float, wide: float, high: float, text: str, colour: str, fill: float,
    *, dashed: bool = False,
) -> str:  # fmt: skip
    dash = ' stroke-dasharray="3 3"' if dashed else ""
    tight = len(text) * LETTER > wide - 4
    fitted = f' textLength="{wide - 6:.1f}" lengthAdjust="spacingAndGlyphs"' if tight else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" rx="4" '
        f'fill="var(--{colour})" fill-opacity="{fill}" stroke="var(--{colour})"{dash}/>'
        f'<text x="{x + wide / 2:.1f}" y="{y + high / 2 + 4:.1f}" text-anchor="middle" '
        f'fill="currentColor"{fitted}>{escape(text)}</text>'
    )


def _square(x: float, y: float, colour: str) -> str:
    return f'<rect x="{x - 8:.1f}" y="{y}" width="16" height="17" rx="3" fill="var(--{colour})"/>'


def _frame(x: float, y: float, wide: float, high: float) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" rx="3" '
        'fill="none" stroke="currentColor" stroke-width="1.5"/>'
    )


def _line(x: float, y: float, to_x: float, to_y: float, *, dashed: bool = False) -> str:
    dash = ' stroke-dasharray="3 3"' if dashed else ""
    way = f"M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}"
    return f'<path d="{way}" stroke="currentColor" opacity="0.6"{dash}/>'


def _arrow(x: float, y: float, to_x: float, to_y: float, colour: str, opacity: float = 1) -> str:
    """A line with a head of 6 pixels at its end."""
    turn = math.atan2(to_y - y, to_x - x)
    end = f"{to_x:.1f} {to_y:.1f}"
    one, other = (
        f"{to_x - 6 * math.cos(turn + side):.1f} {to_y - 6 * math.sin(turn + side):.1f}"
        for side in (0.45, -0.45)
    )
    return (
        f'<path d="M{x:.1f} {y:.1f}L{end}M{one}L{end}L{other}" fill="none" stroke="{colour}" '
        f'stroke-width="2" opacity="{opacity:.2f}"/>'
    )


_DRAWN: dict[str, Callable[..., str]] = {
    function.__name__: function
    for function in (
        arrows, bars, cells, curve, flow, looks, pieces, products, sharing, table, tower,
    )
}  # fmt: skip
