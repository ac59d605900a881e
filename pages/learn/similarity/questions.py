"""The questions of the page "Similarity", answered on the lecture's six words."""

from __future__ import annotations

from ui.widgets.questions import Question


def questions() -> list[Question]:
    """Three questions; what is right is computed by the same functions as the page."""
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
        (2, 1): "the dot product doubles, the cosine stays",
        (2, 2): "both double",
        (1, 1): "both stay",
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
            ask="One of two vectors is made twice as long. What becomes of their dot product and "
            "of their cosine?",
            right=change,
            wrong=tuple(text for text in changes.values() if text != change),
            because=f"“Your” and “journey” of the lecture: {float(once.dots[0]):.4f} becomes "
            f"{float(twice.dots[0]):.4f}; the cosine is {float(once.cosines[0]):.4f} both times.",
        ),
        Question(
            ask="The lecture takes softmax(x·xᵀ) of six words, “Your journey starts with one "
            "step”. In how many rows is the weight of a word on itself the largest?",
            right=f"in {n_first} of 6",
            wrong=tuple(count for count in counts if count != f"in {n_first} of 6"),
            because="The six vectors are not equally long: “journey”, of length "
            f"{float(once.lengths[1]):.2f}, wins in the rows of shorter words that point its way. "
            "Between vectors of one length every word would win its own row.",
        ),
        Question(
            ask="`torch.softmax(scores, dim=0)` of scores with one row a query. What sums to 1?",
            right=whole,
            wrong=tuple(name for name in sums if name != whole),
            because="Dimension 0 runs down the rows: each key is divided among the queries. Row 0 "
            f"sums to {float(sums['each row'][0]):.3f}. Attention needs `dim=-1`, along a row.",
        ),
    ]
