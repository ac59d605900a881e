"""The input of layer 0: token, segment and position vectors, and their sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pages.learn.tokens.tokenizers import printable
from serving import models
from serving.cache import cached
from serving.limits import MAX_LESSON_TOKENS
from serving.prompts import prepare_prompt
from ui.canvas.chips import Chip
from ui.canvas.tensors import Panel, Quantity

if TYPE_CHECKING:
    from pretrained import Tokens

# number of columns drawn of each embedding
COLUMNS = 12


def token_chips(tokens: Tokens, choice: int) -> list[Chip]:
    """Make a chip per token, with a frame around the chosen one."""
    return [
        Chip(printable(tokens, i), f"token {i}: id {tokens.ids[i]}", selected=i == choice)
        for i in range(len(tokens))
    ]


@dataclass(frozen=True)
class EmbeddedText:
    """The parts of a text's input embeddings, (T, C) each, float32, read-only.

    `position` is None for a model without position vectors, and `segment` for one without segments.
    `layer_input` is None if the sum itself enters layer 0.
    """

    title: str
    tokens: Tokens
    token: np.ndarray
    position: np.ndarray | None
    segment: np.ndarray | None
    total: np.ndarray
    layer_input: np.ndarray | None
    difference: float

    @property
    def nbytes(self) -> int:
        """Total size of all parts in bytes."""
        parts = (self.token, self.position, self.segment, self.total, self.layer_input)
        return sum(part.nbytes for part in parts if part is not None)

    def panels(self, index: int) -> tuple[Panel, ...]:
        """Panels of one token's parts in the order they are added, cut to the first columns."""
        by_name: tuple[tuple[str, np.ndarray | None, Quantity], ...] = (
            ("token embedding", self.token, ""),
            ("+ segment embedding", self.segment, ""),
            ("+ position embedding", self.position, "positions"),
            ("= sum", self.total, "stream" if self.layer_input is None else ""),
            ("after LayerNorm: enters layer 0", self.layer_input, "stream"),
        )
        width = min(COLUMNS, self.token.shape[1])
        return tuple(
            Panel(
                name,
                part[index, :width],
                ("column",),
                cells=np.arange(width),  # so that all parts of a column's sum light up together
                quantity=quantity,
                positions=(range(width),),
                whole=(part.shape[1],),
            )
            for name, part, quantity in by_name
            if part is not None
        )


@cached(key=lambda name, text: (*models.key(name), text))
def embed_text(name: str, text: str) -> EmbeddedText:
    """Compute the token, position and segment embeddings of a text in model `name`.

    Raises: OverLimit for too many tokens, ValueError for a text without tokens, and
    `models.LOAD_ERRORS`.
    """
    import torch

    from pages.learn.tokens.experiment import check_input

    model = models.get(name)
    limit = min(MAX_LESSON_TOKENS, model.core.config.context_length)
    tokens = prepare_prompt(model, text, limit, "this picture").tokens
    check = check_input(model.core, torch.tensor([tokens.ids], device=model.device))
    shape = check.layer_input.shape[1:]

    def array(part: torch.Tensor | None) -> np.ndarray | None:
        if part is None:
            return None
        # (B, T, C), (T, C) or (C) -> (T, C)
        values = part.reshape(-1, shape[1]).expand(shape).float().cpu().numpy()
        values.setflags(write=False)
        return np.asarray(values)

    parts = check.parts
    token, total = array(parts.token), array(parts.total)
    assert token is not None  # for the type checker: every model has both
    assert total is not None
    return EmbeddedText(
        title=model.spec.title,
        tokens=tokens,
        token=token,
        position=array(parts.position),
        segment=array(parts.segment),
        total=total,
        layer_input=None if parts.layer_input is parts.total else array(parts.layer_input),
        difference=check.difference,
    )
