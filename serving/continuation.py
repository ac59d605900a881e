"""Continues the text in the picture of a forward pass, both with and without a KV cache.

Both runs choose the same tokens, unless two logits are so close that rounding decides. If one run
stops earlier, the extra passes of the other are dropped. Every pass is timed. Dimension letters as
in `serving.one_pass`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from serving import compute, models, token_text
from serving.cache import cached
from serving.limits import MAX_ONE_PASS_TOKENS
from serving.prompts import prepare_prompt
from serving.step_times import StepTime

if TYPE_CHECKING:
    from attention_core import KVCache, Sampling, Step
    from pretrained import Pretrained, Tokenizer

N_CHOICES = 10  # most likely tokens shown per pass


@dataclass(frozen=True)
class TokenChoices:
    """The most likely next tokens after a pass, with their probabilities.

    selected: the token that was sampled.
    """

    tokens: tuple[str, ...]
    probabilities: tuple[float, ...]
    selected: str


@dataclass(frozen=True)
class TextContinuation:
    """The continuation of a text.

    ids: the new tokens that were run; the last token chosen isn't run. cached, uncached: one
    `StepTime` per pass; the first pass runs the prompt, and the last pass runs the last of `ids`.
    choices: one per pass.
    """

    n_prompt: int
    ids: tuple[int, ...]
    cached: tuple[StepTime, ...]
    uncached: tuple[StepTime, ...]
    choices: tuple[TokenChoices, ...]


def continue_text(
    name: str, text: str, n_new: int, temperature: float, top_k: int | None
) -> TextContinuation:
    """Generate `n_new` tokens in both runs, or fewer if they don't fit or the text ends.

    temperature, top_k: as in `attention_core.Sampling`, with seed 0. Visitors with the same
    settings share one measurement.
    Raises: ValueError for an encoder, or for a text after which no new token fits; the errors of
    loading a model.
    """
    from attention_core import Sampling

    model = models.get(name)
    if model.spec.role != "decoder":
        raise ValueError(f"{model.spec.title} is an encoder and can't generate text")
    prepared = prepare_prompt(model, text, MAX_ONE_PASS_TOKENS, "the whole pass", n_new + 1)
    most = min(prepared.n_new - 1, MAX_ONE_PASS_TOKENS - len(prepared.ids))
    if most < 1:
        raise ValueError(
            f"The text already has {len(prepared.ids)} tokens. This picture shows at most "
            f"{MAX_ONE_PASS_TOKENS}, so shorten the text to generate new ones."
        )
    sampling = Sampling(temperature, top_k)
    return _generate(model, prepared.ids, most, sampling)


@cached(key=lambda model, *asked: (model.name, str(model.source), *asked))
def _generate(
    model: Pretrained, prompt: tuple[int, ...], n_new: int, sampling: Sampling
) -> TextContinuation:
    """Generate with and without a cache, each step in an exclusive slot for accurate times."""
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

    steps(None, 1)  # warm up, because the first pass is slower
    uncached, cached = steps(None), steps(core.new_cache(1, len(prompt) + n_new))
    n_passes = min(len(cached), len(uncached))
    passes = [
        [StepTime.from_step(step) for step in taken[:n_passes]] for taken in (cached, uncached)
    ]
    for step in (*passes[0], *passes[1]):
        step.count()
    return TextContinuation(
        n_prompt=len(prompt),
        ids=tuple(step.token_id for step in passes[0][:-1]),  # the last token chosen isn't run
        cached=tuple(passes[0]),
        uncached=tuple(passes[1]),
        choices=tuple(_choices(step, model.tokenizer, sampling) for step in cached[:n_passes]),
    )


def _choices(step: Step, tokenizer: Tokenizer, sampling: Sampling) -> TokenChoices:
    from attention_core.sampling import probabilities

    shares = probabilities(step.logits, sampling)
    top = shares.topk(min(N_CHOICES, len(shares)))
    *tokens, chosen = token_text.pieces(tokenizer, [*top.indices.tolist(), step.token_id])
    return TokenChoices(tuple(tokens), tuple(top.values.tolist()), chosen)
