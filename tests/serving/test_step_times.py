"""What is kept of a step: every number of it under its own name, and no tensor."""

import dataclasses

import torch

from attention_core import Step
from serving.step_times import StepTime


def test_a_step_without_its_tensors():
    step = Step("prefill", 11, -0.5, 0.25, 7, 9, 13, 17, torch.zeros(3))
    kept = StepTime.of(step)
    assert kept == StepTime("prefill", 11, -0.5, 0.25, 7, 9, 13, 17)
    names = {field.name for field in dataclasses.fields(Step)}
    assert {field.name for field in dataclasses.fields(StepTime)} == names - {
        "logits",
        "records",
    } | {"stood_still"}
