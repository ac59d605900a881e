"""Every tensor in a checkpoint is used as in transformers, or rejected."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from attention_core.positions.scaling import plain_frequencies
from pretrained import checkpoint, compatibility
from pretrained.weights import core_from_reference, core_from_state_dict, parts_outside_core
from tests.helpers.checkpoints import (
    State,
    change_state,
    our_logits,
    save_tokenizer,
    their_logits,
)
from tests.helpers.reference_models import TOLERANCE, enlarge, gpt2, ids, llama
from tests.helpers.small_bert import bert, save_bert

EMBEDDING = {
    "gpt2": "transformer.wte.weight",
    "llama": "model.embed_tokens.weight",
    "bert": "bert.embeddings.word_embeddings.weight",
}
HEAD = {
    "gpt2": "lm_head.weight",
    "llama": "lm_head.weight",
    "bert": "cls.predictions.decoder.weight",
}


def save(family: str, folder: Path, tied: bool) -> Any:
    """Save a tiny random model with transformers."""
    if family == "bert":
        return save_bert(folder, tie_word_embeddings=tied)
    model = gpt2() if family == "gpt2" else llama()
    model.config.tie_word_embeddings = tied
    enlarge(model).save_pretrained(folder)
    save_tokenizer(folder)
    return model


STORED: dict[str, Callable[[str], Callable[[State], object]]] = {
    "as saved": lambda family: lambda state: None,
    "one matrix": lambda family: lambda state: state.pop(HEAD[family], None),
    "two equal matrices": lambda family: (
        lambda state: state.update({HEAD[family]: state[EMBEDDING[family]].clone()})
    ),
    "two matrices": lambda family: (
        lambda state: state.update(
            {
                HEAD[family]: state[EMBEDDING[family]]
                + 0.3 * torch.randn_like(state[EMBEDDING[family]])
            }
        )
    ),
    "two matrices, one row differs": lambda family: (
        lambda state: state.update(
            {HEAD[family]: state[EMBEDDING[family]].index_fill(0, torch.tensor([7]), 2.0)}
        )
    ),
    "only the head": lambda family: (
        lambda state: state.update({HEAD[family]: state.pop(EMBEDDING[family]).clone()})
    ),
}


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("family", EMBEDDING)
def test_output_head(family: str, tied: bool, stored: str, models: Path):
    folder = models / "mine"
    torch.manual_seed(4)
    save(family, folder, tied)
    change_state(folder, STORED[stored](family))
    tokens = torch.randint(14, (2, 9))
    expected, missing = their_logits(family, folder, tokens)
    # BERT's encoder needs the embedding, which transformers can tie to the head but we don't
    if missing or (family == "bert" and stored == "only the head"):
        with pytest.raises(ValueError, match="no weight"):
            our_logits(family, folder, tokens)
    else:
        assert_close(our_logits(family, folder, tokens), expected, **TOLERANCE)
        answer = compatibility.check_model("mine")
        core = core_from_state_dict(checkpoint.read_config(folder), checkpoint.read_state(folder))
        assert answer.n_parameters == sum(parameter.numel() for parameter in core.parameters())


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_replaced_head_of_a_model_in_memory(family: str, tied: bool):
    model = gpt2() if family == "gpt2" else llama()
    model.config.tie_word_embeddings = tied
    enlarge(model)
    tokens = ids(model)
    for noise in (0.0, 0.3):
        head = model.lm_head.weight.detach()
        model.lm_head.weight = torch.nn.Parameter(head + noise * torch.randn_like(head))
        assert_close(core_from_reference(model)(tokens).logits, model(tokens).logits, **TOLERANCE)


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("stored", [("bias",), ("decoder.bias",), ("bias", "decoder.bias")])
def test_masked_word_head_bias(tied: bool, stored: tuple[str, ...], models: Path):
    folder = models / "mine"
    save_bert(folder, tie_word_embeddings=tied)
    prefix = "cls.predictions."

    def change(state: State) -> None:
        biases = {prefix + name: torch.randn(14) for name in stored}
        for name in ("bias", "decoder.bias"):
            state.pop(prefix + name, None)
        state.update(biases)

    change_state(folder, change)
    tokens = torch.randint(14, (2, 9))
    expected, missing = their_logits("bert", folder, tokens)
    # transformers doesn't use an untied `bias`
    if missing - {prefix + "bias"}:
        with pytest.raises(ValueError, match=r"decoder\.bias"):
            our_logits("bert", folder, tokens)
    else:
        assert_close(our_logits("bert", folder, tokens), expected, **TOLERANCE)


def vector(n: int) -> Tensor:
    return torch.linspace(0.1, 1.0, n)


# family -> tensors that the model doesn't use or the configuration doesn't mention
EXTRA: dict[str, State] = {
    "gpt2": {
        "lm_head.bias": vector(97),
        "score.weight": torch.ones(2, 24),
        "transformer.h.3.ln_1.weight": vector(24),  # the model only has 3 layers
        "transformer.h.1.attn.q_attn.weight": torch.ones(24, 24),
        "transformer.h.1.crossattention.bias": torch.ones(1, 1, 31, 31).tril(),
        "transformer.h.1.attn.bias": torch.ones(1, 1, 31, 31),  # this mask hides nothing
        "transformer.h.2.attn.bias": torch.ones(1, 1, 30, 30).tril(),
        "transformer.h.1.attn.masked_bias": torch.tensor(0.0),
        "transformer.position_ids": torch.arange(31),
    },
    "llama": {
        "model.layers.1.self_attn.q_proj.bias": vector(48),
        "model.layers.0.self_attn.o_proj.bias": vector(30),
        "model.layers.0.mlp.up_proj.bias": vector(44),
        "model.layers.1.self_attn.q_norm.weight": vector(8),
        "model.layers.1.self_attn.rotary_emb.inv_freq": plain_frequencies(8, 900.0),
        "model.rotary_emb.inv_freq": plain_frequencies(10, 5000.0),
        "lm_head.bias": vector(89),
        "model.norm.bias": vector(30),
    },
    "bert": {
        "embeddings.position_ids": torch.arange(29).flip(0)[None],
        "classifier.weight": torch.ones(3, 20),
        "encoder.layer.1.crossattention.self.key.weight": torch.ones(20, 20),
        "encoder.layer.2.attention.self.distance_embedding.weight": torch.ones(57, 4),
    },
}


@pytest.mark.parametrize(
    ("family", "name"), [(family, name) for family, extra in EXTRA.items() for name in extra]
)
def test_rejects_extra_tensors(family: str, name: str):
    reference = enlarge({"gpt2": gpt2, "llama": llama, "bert": bert}[family]())
    state = reference.state_dict() | {name: EXTRA[family][name]}
    with pytest.raises(ValueError, match=name.split(".", 1)[1].replace(".", r"\.")):
        core_from_state_dict(reference.config.to_dict(), state)


# family -> buffers of old checkpoints that the core computes itself
COMPUTED: dict[str, State] = {
    "gpt2": {
        "transformer.h.1.attn.bias": torch.ones(1, 1, 31, 31, dtype=torch.uint8).tril(),
        "h.0.attn.bias": torch.ones(1, 1, 31, 31).tril(),
        "transformer.h.1.attn.masked_bias": torch.tensor(-1e9),
        "h.2.attn.masked_bias": torch.tensor(-1e4, dtype=torch.float16),
    },
    "llama": {
        "model.layers.1.self_attn.rotary_emb.inv_freq": plain_frequencies(8, 5000.0),
        "model.rotary_emb.inv_freq": plain_frequencies(8, 5000.0).half(),
        "model.layers.0.self_attn.rotary_emb.inv_freq": plain_frequencies(8, 5000.0).bfloat16(),
    },
    "bert": {
        "embeddings.position_ids": torch.arange(29)[None],
        "bert.embeddings.position_ids": torch.arange(29),
    },
}


@pytest.mark.parametrize(
    ("family", "name"), [(family, name) for family, names in COMPUTED.items() for name in names]
)
def test_ignores_buffers_that_the_core_computes(family: str, name: str):
    reference = enlarge({"gpt2": gpt2, "llama": llama, "bert": bert}[family]())
    state = reference.state_dict() | {name: COMPUTED[family][name]}
    core = core_from_state_dict(reference.config.to_dict(), state)
    tokens = ids(reference)
    expected = reference(tokens, output_hidden_states=True).hidden_states[-1]
    assert_close(core(tokens).hidden, expected, **TOLERANCE)


SPELLINGS = {
    "gpt2": ("transformer.h.1.ln_2.bias", "h.1.ln_2.bias"),
    "llama": ("model.layers.1.mlp.up_proj.weight", "layers.1.mlp.up_proj.weight"),
    "bert": ("bert.encoder.layer.1.output.dense.bias", "encoder.layer.1.output.dense.bias"),
    "bert, 2018 names": (
        "bert.encoder.layer.1.output.LayerNorm.weight",
        "bert.encoder.layer.1.output.LayerNorm.gamma",
    ),
    "bert, head": (
        "cls.predictions.transform.LayerNorm.bias",
        "cls.predictions.transform.LayerNorm.beta",
    ),
}


@pytest.mark.parametrize("case", SPELLINGS)
def test_tensor_with_two_names(case: str, models: Path):
    family, (name, other) = case.split(",")[0], SPELLINGS[case]
    folder = models / "mine"
    save(family, folder, tied=True)
    tokens = torch.randint(14, (2, 9))
    expected = our_logits(family, folder, tokens)
    change_state(folder, lambda state: state.update({other: state[name].clone()}))
    assert_close(our_logits(family, folder, tokens), expected, atol=0.0, rtol=0.0)
    change_state(folder, lambda state: state.update({other: state[name] + 0.5}))
    with pytest.raises(ValueError, match="twice, with different values"):
        our_logits(family, folder, tokens)


@pytest.mark.parametrize("family", ["gpt2", "llama", "bert"])
@pytest.mark.parametrize("prefix", ["transformer.", "model.", "bert."])
def test_prefix_of_another_family(family: str, prefix: str):
    """With this prefix, transformers finds no weights and would initialize all of them."""
    reference = enlarge({"gpt2": gpt2, "llama": llama, "bert": bert}[family]())
    own = {"gpt2": "transformer.", "llama": "model.", "bert": "bert."}[family]
    state = {
        name.replace(own, prefix, 1) if name.startswith(own) else name: tensor
        for name, tensor in reference.state_dict().items()
    }
    if prefix == own:
        assert core_from_state_dict(reference.config.to_dict(), state)
    else:
        with pytest.raises(ValueError, match="no weight"):
            core_from_state_dict(reference.config.to_dict(), state)


@pytest.mark.parametrize("family", ["gpt2", "llama", "bert"])
def test_rejects_models_on_meta_or_with_mixed_dtypes(family: str):
    build = {"gpt2": gpt2, "llama": llama, "bert": bert}[family]
    with torch.device("meta"), pytest.raises(ValueError, match="meta"):
        core_from_reference(build())
    model = build()
    next(model.base_model.parameters()).data = next(model.base_model.parameters()).data.half()
    with pytest.raises(ValueError, match=r"torch\.float16, torch\.float32"):
        core_from_reference(model)


@pytest.mark.parametrize("shape", [(20,), (20, 20, 2), ()])
@pytest.mark.parametrize("part", ["transform.dense.weight", "decoder.weight"])
def test_rejects_masked_word_heads_with_wrong_shapes(
    part: str, shape: tuple[int, ...], models: Path
):
    folder = models / "mine"
    save_bert(folder)
    change_state(folder, lambda state: state.update({f"cls.predictions.{part}": torch.ones(shape)}))
    with pytest.raises(ValueError, match=r"masked-word head|20"):
        our_logits("bert", folder, torch.ones(1, 3, dtype=torch.long))


def test_report_lists_bert_tensors_outside_the_core(models: Path):
    save_bert(models / "mine")
    names = checkpoint.tensor_names(models / "mine") | {"bert.pooler.dense.bias"}
    outside = parts_outside_core("bert", names)
    assert "bert.pooler.dense.bias" in outside
    assert {name for name in names if name.startswith("cls.")} <= set(outside)
    assert not any("encoder" in name for name in outside)
    assert "cls.predictions.transform.dense.weight" in compatibility.check_model("mine").where


def test_rejects_masked_word_heads_with_extra_tensors(models: Path):
    folder = models / "mine"
    save_bert(folder)
    extra = "cls.predictions.transform.gate.weight"
    change_state(folder, lambda state: state.update({extra: torch.ones(20, 20)}))
    with pytest.raises(ValueError, match=extra.replace(".", r"\.")):
        our_logits("bert", folder, torch.ones(1, 3, dtype=torch.long))


ALIASES = [
    (family, names[0], alias)
    for family, groups in checkpoint.ALIASES.items()
    for names in groups
    for alias in names[1:]
]


@pytest.mark.parametrize(("family", "option", "alias"), ALIASES)
def test_option_with_two_names(family: str, option: str, alias: str):
    reference = enlarge(gpt2())
    config, state = reference.config.to_dict(), reference.state_dict()
    assert core_from_state_dict(config | {alias: config[option]}, state)
    with pytest.raises(ValueError, match=alias):
        core_from_state_dict(config | {alias: 2 * config[option]}, state)


def test_rejects_duplicate_json_keys():
    for text in ('{"n_head": 4, "n_head": 2}', '{"a": {"b": 1, "b": 1}}'):
        with pytest.raises(ValueError, match="twice"):
            checkpoint.json_object(text.encode(), 1000, "config.json")
