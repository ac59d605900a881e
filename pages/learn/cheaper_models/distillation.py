"""Section "Learning from a large model" of the page "Cheaper models"."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import streamlit as st

from pages.learn.cheaper_models import charts
from serving import compute, models
from serving.cache import cached
from serving.runs import Run
from ui.charts.show import show
from ui.export import source, tables
from ui.text.formatting import format_number, plural
from ui.text.isolated import isolated
from ui.widgets import controls
from ui.widgets.linked import linked
from ui.widgets.plain_table import plain_table

NAME = "Learning from a large model"
N_DEPTHS = 10  # points of the curve; each one computes all logits of the text
N_ROWS = 128  # logits computed per batch: 78 MB for a vocabulary of 152,000
ENTROPY, DIVERGENCE = "teacher's entropy", "KL divergence"  # both in bits
SOFT, HARD = "logits changed by the teacher", "logits changed by the right token"
CODE = "pages/learn/cheaper_models/experiment/distillation.py"


@cached(key=lambda run, temperature: (*run.key, temperature))
def curve(run: Run, temperature: float) -> pd.DataFrame:
    """Mean divergence of students by depth: columns `layers`, `divergence`.

    The mean is over all positions that have a next token, as in `student`.
    """
    import torch

    from attention_core.analysis.residual_stream import logit_lens
    from pages.learn.cheaper_models.experiment.distillation import divergence_bits

    core = run.pretrained.core
    n_layers = core.config.n_layers
    depths = range(n_layers, 0, -max(1, n_layers // N_DEPTHS))
    divergences: list[float] = []
    with torch.inference_mode():
        with compute.slot():
            teacher = logit_lens(core, run.state(n_layers)).float()
            states = torch.cat([run.state(depth) for depth in depths])
        # each product reads the whole output matrix, so handle several depths together
        for some in torch.split(states, max(1, N_ROWS // len(run.tokens))):
            with compute.slot():
                students = logit_lens(core, some).float()
                bits = divergence_bits(teacher, students, temperature)
                divergences += bits[:, :-1].mean(dim=1).tolist()
    return pd.DataFrame({"layers": depths, "divergence": divergences})


@dataclass(frozen=True)
class Student:
    """A student compared with its teacher.

    table: one row per position that has a next token. mean: mean divergence. n_agreements: number
    of positions where teacher and student predict the same token.
    """

    table: pd.DataFrame
    mean: float
    n_agreements: int


@cached(key=lambda run, n_layers, temperature: (run.key, n_layers, temperature))
def student(run: Run, n_layers: int, temperature: float) -> Student:
    """Compare the first `n_layers` layers with the whole model, token by token.

    Raises: ValueError for a text of one token. Other errors: as in loading a model.
    """
    import torch

    from attention_core.analysis.residual_stream import logit_lens
    from pages.learn.cheaper_models.experiment import distillation

    labels = run.tokens.labels
    if len(labels) < 2:
        raise ValueError("A single token has no next token. Please type another word.")
    core = run.pretrained.core
    with compute.slot(), torch.inference_mode():
        of_teacher, of_student = (
            logit_lens(core, run.state(depth))[0, :-1].float()
            for depth in (core.config.n_layers, n_layers)
        )
        right = torch.tensor(run.tokens.ids[1:], device=of_student.device)
        # gradients are compared at temperature 1 because the hard one has no temperature
        soft = distillation.soft_gradient(of_teacher, of_student)
        hard = distillation.hard_gradient(right, of_student)
        bits = distillation.divergence_bits(of_teacher, of_student, temperature)
        table = pd.DataFrame(
            {
                "position": range(len(labels) - 1),
                "reads up to": labels[:-1],
                "right token": labels[1:],
                ENTROPY: distillation.entropy_bits(of_teacher / temperature).tolist(),
                DIVERGENCE: bits.tolist(),
                SOFT: distillation.n_pushed(soft).tolist(),
                HARD: distillation.n_pushed(hard).tolist(),
            }
        )
        agrees = int((of_teacher.argmax(-1) == of_student.argmax(-1)).sum())
    return Student(table, float(bits.mean()), agrees)


def costs(run: Run, n_layers: int) -> pd.DataFrame:
    """Parameters and multiplications of the teacher and the student."""
    from pages.learn.cheaper_models.experiment import distillation

    config, n_tokens = run.pretrained.core.config, len(run.tokens)
    both = {"teacher": config.n_layers, "student": n_layers}
    counts = [distillation.costs(config, depth, n_tokens) for depth in both.values()]
    return pd.DataFrame(
        {
            "": list(both),
            "layers": list(both.values()),
            "parameters": [f"{count / 1e6:,.1f} million" for count, _ in counts],
            "multiplications for your text": [
                f"{format_number(count / 1e9, '.3g')} billion" for _, count in counts
            ],
        }
    )


def notice(of_student: Student, n_layers: int) -> str:
    """Summarize the comparison as plain text."""
    table = of_student.table
    if not table[DIVERGENCE].max() > 0:
        return (
            f"With all {n_layers} layers the student equals the teacher, so every divergence is 0."
        )
    farthest = table.loc[table[DIVERGENCE].idxmax()]
    return (
        f"With {plural(n_layers, 'layer')} the student predicts the teacher's token at "
        f"{of_student.n_agreements} of {len(table)} positions. The largest divergence is "
        f"{format_number(farthest[DIVERGENCE], '.2g')} bits, after "
        f"“{isolated(farthest['reads up to'])}”. There a step toward the teacher would change "
        f"{farthest[SOFT]:,} logits by more than 0.001, and a step toward the right token alone "
        f"would change {farthest[HARD]:,}."
    )


def draw(run: Run) -> None:
    """Draw the section."""
    st.markdown(
        "A text shows only **the right token**. A large **teacher** gives every token a "
        "probability, so a small **student** learns more from each position."
    )
    n_all = models.spec(run.model).n_layers
    left, right = st.columns(2, gap="large")
    with right:
        n_layers = controls.number(
            "Student layers",
            "cheaper_models_student_layers",
            n_all + 1,
            n_all - max(n_all // 10, 1),
            minimum=1,
        )
        temperature = linked(
            st.slider,
            "Temperature",
            1.0,
            5.0,
            1.0,
            0.5,
            key="cheaper_models_temperature",
            help="Divides the logits of both models. Higher values give unlikely tokens more "
            "weight.",
        )
    of_student = student(run, n_layers, temperature)
    with left:
        show(charts.curve_chart, curve(run, temperature), n_layers, key="cheaper_models_curve")
    with right:
        plain_table(costs(run, n_layers), "Savings of the student")
        st.text(notice(of_student, n_layers))
    st.markdown(
        "Here the student is the same model, cut off after some layers, and it wasn't trained that "
        "way. A training step changes each logit by (teacher's p − student's p) ÷ temperature."
    )
    show(
        charts.tokens_chart,
        of_student.table,
        (ENTROPY, DIVERGENCE),
        key="cheaper_models_tokens",
    )
    with st.expander("Every token in numbers, and the code"):
        forms = {ENTROPY: "{:.2f}", DIVERGENCE: "{:.2f}"}
        plain_table(of_student.table, "Every token", forms, max_rows=300)
        tables.download("Download (CSV)", of_student.table, "student.csv", key="cheaper_models_csv")
        source.show(CODE, "divergence_bits")
        source.show(CODE, "soft_gradient")
