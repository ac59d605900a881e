"""New tokens behind a text, for the picture of one pass: written with a KV cache and without it.

Both ways choose the same tokens, unless two are so alike to the model that rounding decides; what
is kept are as many passes as both made. Every pass is timed. Dimension letters as in
`serving.one_pass`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from serving import compute, models, token_text
from serving.cache import cached
from serving.limits import MAX_ONE_PASS_TOKENS
from serving.prompts import prepare
from serving.step_times import StepTime

if TYPE_CHECKING:
    from attention_core import KVCache, Sampling, Step
    from pretrained import Pretrained, Tokenizer

N_CHOICES = 10  # likeliest tokens of a pass that are shown


@dataclass(frozen=True)
class Choices:
    """What a pass says may come next: the likeliest tokens, and their probabilities.

    chosen: the token that was drawn from all probabilities.
    """

    tokens: tuple[str, ...]
    probabilities: tuple[float, ...]
    chosen: str


@dataclass(frozen=True)
class WrittenOn:
    """New tokens behind a text.

    ids: the tokens that were written and run; an end of the text is chosen last but not run.
    cached, uncached: one `StepTime` a pass; the first pass runs the prompt, and the last runs the
    last of `ids`. choices: of each pass.
    """

    n_prompt: int
    ids: tuple[int, ...]
    cached: tuple[StepTime, ...]
    uncached: tuple[StepTime, ...]
    choices: tuple[Choices, ...]


def write_on(name: str, text: str, n_new: int, temperature: float, top_k: int | None) -> WrittenOn:
    """Write `n_new` tokens both ways, or fewer where there is no room or the text ends.

    temperature, top_k: as of `attention_core.Sampling`, with the seed 0. Measured once for all
    visitors who ask the same.
    Raises: ValueError for an encoder and for a text that leaves no room; and what loading a model
    raises.
    """
    from attention_core import Sampling

    model = models.get(name)
    if model.spec.role != "decoder":
        raise ValueError(f"{model.spec.title} writes no text")
    prepared = prepare(model, text, MAX_ONE_PASS_TOKENS, "the whole pass", n_new + 1)
    most = min(prepared.n_new - 1, MAX_ONE_PASS_TOKENS - len(prepared.ids))
    if most < 1:
        raise ValueError(
            f"The text has {len(prepared.ids)} tokens: in this picture, which takes at most "
            f"{MAX_ONE_PASS_TOKENS}, there is no room for new ones. Type a shorter text."
        )
    sampling = Sampling(temperature, top_k)
    return _written(model, prepared.ids, most, sampling)


@cached(key=lambda model, *asked: (model.name, str(model.source), *asked))
def _written(
    model: Pretrained, prompt: tuple[int, ...], n_new: int, sampling: Sampling
) -> WrittenOn:
    """Both ways, each step alone, so that it is the model's own time; others go in between."""
    from attention_core.generation import stream

    core, ends = model.core, model.tokenizer.end_ids

    def steps(cache: KVCache | None, n_passes: int = n_new + 1) -> list[Step]:
        taken = stream(
            core,
            prompt,
            max_new_tokens=n_passes,
            cache=cache,
            sampling=sampling,
            stop_ids=ends,
        )
        return list(compute.steps(taken, exclusive=True))

    steps(None, 1)  # the first pass of a while is slower than the others
    uncached, cached = steps(None), steps(core.new_cache(1, len(prompt) + n_new))
    n_passes = min(len(cached), len(uncached))
    passes = [[StepTime.of(step) for step in taken[:n_passes]] for taken in (cached, uncached)]
    for step in (*passes[0], *passes[1]):
        step.count()
    return WrittenOn(
        n_prompt=len(prompt),
        ids=tuple(step.token_id for step in passes[0][:-1]),  # what is chosen last is not run
        cached=tuple(passes[0]),
        uncached=tuple(passes[1]),
        choices=tuple(_choices(step, model.tokenizer, sampling) for step in cached[:n_passes]),
    )


def _choices(step: Step, tokenizer: Tokenizer, sampling: Sampling) -> Choices:
    from attention_core.sampling import probabilities

    shares = probabilities(step.logits, sampling)
    top = shares.topk(min(N_CHOICES, len(shares)))
    *tokens, chosen = token_text.pieces(tokenizer, [*top.indices.tolist(), step.token_id])
    return Choices(tuple(tokens), tuple(top.values.tolist()), chosen)
