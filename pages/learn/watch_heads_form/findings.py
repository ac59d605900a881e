"""Sentences about a run, based on its numbers."""

from __future__ import annotations

from pages.learn.watch_heads_form.recording import BLIND_GUESS, Moment, TrainingHistory
from serving.heads import HeadId
from ui.text.formatting import percent

HALF = BLIND_GUESS / 2


def drop_sentence(recording: TrainingHistory) -> str:
    """Say when the loss dropped and how good the heads were at that step, as Markdown."""
    last, drop = recording.moments[-1], recording.drop
    if drop is None:
        return (
            f"The loss hasn't dropped yet. After step {last.step} it is {last.loss_trained:.2f}, "
            f"and a blind guess has a loss of {BLIND_GUESS:.2f}. The best scores are "
            f"{_scores(last)}."
        )
    return (
        f"**The loss dropped at step {drop.step}** to less than {HALF:.2f}, half the loss of a "
        f"blind guess. At that step, the best scores were {_scores(drop)}. After step {last.step}, "
        f"they are {_scores(last)}."
    )


def generalization_sentence(recording: TrainingHistory) -> str:
    """Say what the model learned, judging by unseen distances, as Markdown."""
    last, settings = recording.moments[-1], recording.settings
    if recording.drop is None:
        if not recording.is_finished:
            return "Watch which comes first, the heads or the drop."
        if settings.scale:
            return "This run was too short."
        return (
            "Without the scale, the scores are large from the start, so the softmax gives almost "
            "everything to one key. Its gradient is then close to 0, and the model hardly learns."
        )
    if not settings.mask:
        head, score = _best_next(last)
        return (
            f"**It peeks at the answer.** Without a mask, {head} puts {percent(score)} of its "
            "weight on the next token. When a model writes, that token doesn't exist yet. With the "
            f"mask back on, the loss is {last.loss_writing:.2f}."
        )
    if last.loss_unseen > HALF:
        visible = float(last.induction_trained.max())
        return (
            "**It learned a distance, not a rule.** At distances from training, the best induction "
            f"score is {visible:.2f}. At unseen distances it's {last.best_induction[1]:.2f}, and "
            "the "
            f"loss is {last.loss_unseen:.2f}."
        )
    return (
        f"At unseen distances, {last.right:.0%} of the guesses are right, so the heads search for "
        "a token and not for a fixed position."
    )


def _scores(moment: Moment) -> str:
    (first, previous), (second, induction) = moment.best_previous, moment.best_induction
    return (
        f"{previous:.2f} for the previous token ({first}) and {induction:.2f} for induction "
        f"({second})"
    )


def _best_next(moment: Moment) -> tuple[str, float]:
    layer, head = divmod(int(moment.next.argmax()), moment.next.shape[1])
    return str(HeadId(layer, head)), float(moment.next[layer, head])
