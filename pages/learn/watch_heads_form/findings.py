"""What a run has shown, in sentences made of its numbers."""

from __future__ import annotations

from pages.learn.watch_heads_form.recording import BLIND_GUESS, Moment, TrainingHistory
from serving.heads import HeadId
from ui.text.number_text import percent

HALF = BLIND_GUESS / 2


def dropped(recording: TrainingHistory) -> str:
    """When the loss dropped and which heads were there then, as Markdown."""
    last, drop = recording.moments[-1], recording.drop
    if drop is None:
        return (
            f"After step {last.step} the loss is {last.loss_trained:.2f}; a blind guess costs "
            f"{BLIND_GUESS:.2f}. It has not dropped yet. The best scores are {_scores(last)}."
        )
    return (
        f"**The loss dropped at step {drop.step}**, below half of a blind guess ({HALF:.2f} of "
        f"{BLIND_GUESS:.2f}). The best scores were then {_scores(drop)}. After step {last.step} "
        f"they are {_scores(last)}."
    )


def learned(recording: TrainingHistory) -> str:
    """What the model has learned, judged by distances that it never saw, as Markdown."""
    last, settings = recording.moments[-1], recording.settings
    if recording.drop is None:
        if not recording.over:
            return "Watch what comes first: the heads, or the drop?"
        if settings.scale:
            return "In this run the steps were too few."
        return (
            "Without the scale the scores are large from the start, and the softmax gives nearly "
            "all to one key. Then it passes hardly any gradient on."
        )
    if not settings.mask:
        head, score = _best_next(last)
        return (
            f"**It reads the answer.** Without a mask {head} puts {percent(score)} of its weight "
            "on the next token. A model that writes has none: with the mask back, the loss is "
            f"{last.loss_writing:.2f}."
        )
    if last.loss_unseen > HALF:
        seen = float(last.induction_trained.max())
        return (
            "**It learned a distance, not a rule.** Where it was trained, the best induction score "
            f"is {seen:.2f}. At distances never trained on it is {last.best_induction[1]:.2f}, and "
            f"the loss is {last.loss_unseen:.2f}."
        )
    return (
        f"At distances never trained on, {last.right:.0%} of the guesses are right: the heads "
        "search for a token, not for a place."
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
