"""Recording selected tensors and layers, and the repr of records."""

import pytest
import torch

from attention_core import recording
from attention_core.recording import TENSORS
from tests.helpers.attention_variants import tokens
from tests.helpers.tiny_models import TINY, build


@pytest.mark.parametrize("name", TINY)
def test_recording_matches_full_record(name: str):
    model = build(name)
    ids = tokens(model)
    layers = model(ids, record=True).layers
    with recording(model) as kept:
        model(ids)
    assert set(kept) == {(layer, tensor) for layer in range(len(layers)) for tensor in TENSORS}
    for (layer, tensor), value in kept.items():
        record = layers[layer]
        if tensor == "attention_output":
            expected = record.attention.output
        else:
            of_heads = hasattr(record.attention, tensor) and tensor != "output"
            expected = getattr(record.attention if of_heads else record, tensor)
        assert torch.equal(value, expected), (layer, tensor)


def test_records_selected_tensors_only():
    model = build("llama")
    with recording(model, layers=[1], tensors=["weights", "mlp_output"]) as kept:
        model(tokens(model))
    assert sorted(kept) == [(1, "mlp_output"), (1, "weights")]
    assert kept[1, "weights"].shape[-1] == tokens(model).shape[1]
    before = dict(kept)
    model(tokens(model))  # recording stops after the block
    assert all(kept[key] is before[key] for key in kept)
    assert len(repr(kept)) < 200


def test_passes_of_other_models_are_not_recorded():
    model, other = build("gpt2"), build("llama")
    with recording(model) as kept, recording(other, layers=[0]) as of_other:
        other(tokens(other))
    assert not kept
    assert {layer for layer, _ in of_other} == {0}


def test_rejects_missing_tensors_and_layers():
    model = build("gpt2")
    with pytest.raises(ValueError, match="got 7"), recording(model, layers=[0, 7]):
        pass
    with pytest.raises(ValueError, match="'wieghts'"), recording(model, tensors=["wieghts"]):
        pass


def test_repr_shows_shapes_without_values():
    model = build("gpt2")
    output = model(tokens(model), record=True)
    layer = output.layers[0]
    for record in (output, layer, layer.attention, output.embedding):
        assert len(repr(record)) < 700
        assert "tensor" not in repr(record)
        assert "<table>" in record._repr_html_()
    assert str(tuple(layer.attention.weights.shape)) in repr(layer.attention)
