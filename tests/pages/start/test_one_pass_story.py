"""The story of one pass fits the disabled parts and the model's biases."""

import numpy as np
import pytest
import torch

from pages.start.one_pass.story import StoryContext, captions
from serving import models
from serving.flow import compute_flow
from serving.one_pass import head_detail, layer_detail, one_pass
from tests.helpers.bundled_models import DECODER, FIRST_GPT2
from ui.text.formatting import percent

TEXT = "Nine grey geese fly"
LAYER, HEAD, QUERY, KEY = 1, 2, 3, 1


def story_and_captions(model: str, *off: str) -> tuple[StoryContext, dict[str, str]]:
    """The story, and the text of every caption by title."""
    passed = one_pass(model, TEXT, off)
    layer, head = layer_detail(passed.run, LAYER), head_detail(passed.run, LAYER, HEAD)
    story = StoryContext(models.spec(model), passed, layer, head, QUERY, KEY)
    return story, {caption.title: caption.text for caption in captions(story)}


def test_story_mentions_disabled_parts():
    assert "divided by √64" in story_and_captions(DECODER)[1]["Scale and mask"]
    story, texts = story_and_captions(DECODER, f"F{LAYER}", f"L{LAYER}H{HEAD}", "mask", "scale")
    score = f"{story.head.scores[QUERY, KEY]:.3g}"
    assert f"switched off: {score}." in texts["Scale and mask"]
    assert "the mask is switched off" in texts["Scale and mask"]
    assert "switched off" in texts["Mix the values"]
    assert "adds nothing" in texts["Add the result to the vector"]
    assert "switched off" in texts["Then every token works on its own"]
    assert not np.any(story.layer.norms["mlp_output"])


@pytest.mark.parametrize(("model", "has_bias"), [(DECODER, False), (FIRST_GPT2, True)])
def test_sums_include_a_learned_bias(model: str, has_bias: bool):
    """The lengths in the text are those of the sum, including a bias if there is one."""
    story, texts = story_and_captions(model)
    assert ("a learned bias" in texts["Add the result to the vector"]) == has_bias
    assert ("a learned bias" in texts["Then every token works on its own"]) == has_bias
    record = story.passed.run.layer(LAYER)
    block = models.get(model).core.blocks[LAYER]
    with torch.inference_mode():
        heads = record.attention.context[0].transpose(0, 1).flatten(1) @ block.attention.out.matrix
        neurons = record.mlp_hidden[0] @ block.mlp.down.matrix
    for tensor, parts in (("attention", heads), ("mlp_output", neurons)):
        is_their_sum = np.allclose(story.layer.norms[tensor], parts.norm(dim=-1), rtol=1e-3)
        assert is_their_sum != has_bias


def test_tour_highlights_its_pair_with_the_weight():
    passed = one_pass(DECODER, TEXT)
    flow = compute_flow(passed.run)
    into = flow.edges[(flow.edges[:, 1] == QUERY) & (flow.edges[:, 2] == KEY)]
    edge = into[into[:, 3].argmax()]
    layer = layer_detail(passed.run, int(edge[0]))
    head = head_detail(passed.run, int(edge[0]), int(edge[4]))
    story = captions(StoryContext(models.spec(DECODER), passed, layer, head, QUERY, KEY))
    [highlighted] = [caption for caption in story if caption.is_highlighted]
    assert percent(float(edge[3])) in highlighted.text
    assert (highlighted.row, highlighted.column) == (QUERY, KEY)
    assert all(not caption.is_highlighted or caption.level == "whole" for caption in story)
