"""Quiz questions of the page "Similarity", about the lecture's six words."""

from __future__ import annotations

from ui.widgets.questions import Question


def questions() -> list[Question]:
    """Build three questions whose answers are computed with the page's own functions."""
    import torch

    from attention_core import attend
    from attention_core.lecture_inputs import JOURNEY
    from pages.learn.similarity.experiment.scores import own_first
    from pages.learn.similarity.experiment.word_vectors import products

    x = JOURNEY.embeddings
    once, twice = products(x[1], x), products(2.0 * x[1], x)
    grown = [float(after[0] / before[0]) for before, after in (
        (once.dots, twice.dots), (once.cosines, twice.cosines))]  # fmt: skip
    changes = {
        (2, 1): "the dot product doubles, the cosine stays the same",
        (2, 2): "both double",
        (1, 1): "both stay the same",
    }
    change = changes[round(grown[0]), round(grown[1])]

    record = attend(x, x, x, scale=1.0)
    n_first = own_first(record.weights)
    counts = [f"in {count} of 6" for count in sorted({0, n_first, 6})]

    weights = torch.softmax(record.scores, dim=0)
    sums = {"each row": weights.sum(1), "each column": weights.sum(0), "the whole": weights.sum()}
    (whole,) = [name for name, sum_ in sums.items() if torch.allclose(sum_, torch.ones_like(sum_))]
    return [
        Question(
            prompt="You make one of two vectors twice as long. What happens to their dot product "
            "and "
            "their cosine?",
            right=change,
            wrong=tuple(text for text in changes.values() if text != change),
            explanation="For the lecture's “Your” and “journey”, the dot product goes from "
            f"{float(once.dots[0]):.4f} to {float(twice.dots[0]):.4f}. The cosine is "
            f"{float(once.cosines[0]):.4f} both times, because it ignores length.",
        ),
        Question(
            prompt="The lecture computes softmax(x·xᵀ) for six words, “Your journey starts with "
            "one "
            "step”. In how many rows does a word give its largest weight to itself?",
            right=f"in {n_first} of 6",
            wrong=tuple(count for count in counts if count != f"in {n_first} of 6"),
            explanation=f"The vector of “journey” is long ({float(once.lengths[1]):.2f}), so it "
            "wins "
            "in the rows of shorter words that point in a similar direction. If all vectors had "
            "the same length, every word would give its largest weight to itself.",
        ),
        Question(
            prompt="`scores` has one row per query. What sums to 1 after "
            "`torch.softmax(scores, dim=0)`?",
            right=whole,
            wrong=tuple(name for name in sums if name != whole),
            explanation="Dimension 0 runs down the columns, so each key is shared among the "
            "queries. "
            f"Row 0 sums to {float(sums['each row'][0]):.3f}. Attention needs `dim=-1`, along the "
            "rows.",
        ),
    ]
