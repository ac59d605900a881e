"""The picture on the page "Variants": which heads read which keys."""

from __future__ import annotations

import base64
import io
from functools import cache

import altair as alt
import numpy as np
import pandas as pd

from pages.kv_cache.variants.key_readers import Form, Ladder
from serving.cache import cached
from ui.charts.style import HEADS, INK, SIGNED, SIGNED_ON_DARK

PICTURE_HEIGHT = 330
MAX_ROWS = 96  # most tokens in a thumbnail
_LATENT = "latent and rotary key"


def _key(ladder: Ladder, form: Form, *, dark: bool) -> tuple[object, ...]:
    return ladder.text, ladder.n_heads, form.name, dark


@cached(key=_key)
def data(ladder: Ladder, form: Form, *, dark: bool) -> tuple[pd.DataFrame, ...]:
    """The tables `parts`, `links` and `query_heads` that `sharing` draws.

    They're cached so that a page run doesn't render the same images again.
    """
    return parts(ladder, form, dark=dark), links(ladder, form), query_heads(ladder, form)


def parts(ladder: Ladder, form: Form, *, dark: bool = False) -> pd.DataFrame:
    """One row per image: `x`, `y` and `wide` as shares, `image` and labels.

    dark: whether the images are for the dark theme.
    """
    largest = max(float(np.abs(part.values).max()) for part in form.parts)
    places, widths = _positions(ladder, form)
    latent = _is_latent(ladder, form)
    tones = tuple(SIGNED_ON_DARK if dark else SIGNED)
    return pd.DataFrame(
        {
            "name": part.name,
            "shape": f"{part.values.shape[0]} tokens × {part.values.shape[1]}",
            "read by": "all query heads" if latent else ", ".join(map(str, part.read_by)),
            "mean length": float(np.linalg.norm(part.values, axis=-1).mean()),
            "x": place,
            "y": 0.6,
            "wide": wide,
            "image": _png(part.values, largest, tones),
            "label": part.name if latent else str(number),
        }
        for number, (part, place, wide) in enumerate(zip(form.parts, places, widths, strict=True))
    )


def links(ladder: Ladder, form: Form) -> pd.DataFrame:
    """One row per line, from a query `head` (`from`, `top`) to what it `reads`."""
    places, _ = _positions(ladder, form)
    return pd.DataFrame(
        {
            "head": head,
            "from": (head + 0.5) / ladder.n_heads,
            "top": 0.9,
            "to": place,
            "bottom": 0.62,
            "colour": HEADS[number % len(HEADS)],
            "reads": part.name,
        }
        for number, (part, place) in enumerate(zip(form.parts, places, strict=True))
        for head in part.read_by
    )


def query_heads(ladder: Ladder, form: Form) -> pd.DataFrame:
    """One row per query head, as in `links`; no `colour` if all read the same parts."""
    heads = links(ladder, form)[: ladder.n_heads]
    return heads.assign(reads=_LATENT, colour="") if _is_latent(ladder, form) else heads


def sharing(parts: pd.DataFrame, links: pd.DataFrame, heads: pd.DataFrame) -> alt.TopLevelMixin:
    """Chart the query heads with lines to images of the keys they read.

    The images are the tensors in layer 0's cache, with tokens as rows and numbers as columns.
    """
    start, place = _shares("from", "top"), _shares("x", "y")
    lines = alt.Chart(links).mark_rule(strokeWidth=2, opacity=0.9)
    top, below = alt.Chart(heads), alt.Chart(parts)
    picture = below.mark_image(
        aspect=False,
        height=PICTURE_HEIGHT * 0.5,
        width=alt.ExprRef("datum.wide * width"),
        baseline="top",
    )
    its_own = {"test": "datum.colour", "field": "colour", "type": "nominal", "scale": None}
    below_picture = PICTURE_HEIGHT * 0.5 + 12
    return alt.layer(
        lines.encode(*start, alt.Color("colour:N", scale=None), alt.X2("to"), alt.Y2("bottom")),
        top.mark_point(filled=True, size=130, opacity=1).encode(
            *start,
            alt.ColorValue(INK, condition=its_own),
            tooltip=[alt.Tooltip("head:N", title="query head"), alt.Tooltip("reads:N")],
        ),
        top.mark_text(color=INK, fontSize=13, dy=-17).encode(*start, alt.Text("head:N")),
        picture.encode(
            *place,
            alt.Url("image:N"),
            tooltip=[
                alt.Tooltip("name:N"),
                alt.Tooltip("shape:N"),
                alt.Tooltip("read by:N"),
                alt.Tooltip("mean length:Q", format=".4f"),
            ],
        ),
        below.mark_text(color=INK, fontSize=13, dy=below_picture).encode(
            *place, alt.Text("label:N")
        ),
        height=PICTURE_HEIGHT,
    )


def _shares(across: str, upwards: str) -> tuple[alt.X, alt.Y]:
    """Encodings for two columns as shares of the width and height, without axes."""
    share = alt.Scale(domain=[0, 1])
    return (
        alt.X(f"{across}:Q", scale=share, axis=None),
        alt.Y(f"{upwards}:Q", scale=share, axis=None),
    )


def _is_latent(ladder: Ladder, form: Form) -> bool:
    return len(form.parts[0].read_by) == ladder.n_heads and len(form.parts) == 2


def _positions(ladder: Ladder, form: Form) -> tuple[list[float], list[float]]:
    """The center and width of each part, as shares of the picture's width."""
    if _is_latent(ladder, form):
        return [0.36, 0.82], [0.5, 0.12]
    middles = [(p.read_by[0] + p.read_by[-1] + 1) / 2 / ladder.n_heads for p in form.parts]
    return middles, [0.82 / ladder.n_heads] * len(form.parts)


def _png(values: np.ndarray, largest: float, colours: tuple[str, ...]) -> str:
    """A matrix as a data URL of a PNG, with colors from -`largest` to `largest`."""
    from PIL import Image

    share = np.clip(values[:MAX_ROWS] / (largest or 1.0), -1, 1)
    # the square root makes small numbers visible
    signed = np.sign(share) * np.sqrt(np.abs(share))
    image = Image.fromarray(np.rint((signed + 1) / 2 * 255).astype(np.uint8))
    image.putpalette(_palette(colours))
    # enlarge by whole pixels, because a browser would blur a small image
    image = image.resize((image.width * 2, image.height * 2), Image.Resampling.NEAREST)
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=1)  # takes half as long and adds only a few bytes
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


@cache
def _palette(colours: tuple[str, ...]) -> bytes:
    """A palette of 256 RGB tones, interpolated between these colors."""
    tones = np.array([list(bytes.fromhex(colour[1:])) for colour in colours])
    places = np.linspace(0, 255, len(colours))
    between = [np.interp(np.arange(256), places, tone) for tone in tones.T]
    return np.stack(between, axis=-1).astype(np.uint8).tobytes()
