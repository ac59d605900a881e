"""Checks whether the core can build a model from its config.json, and lists the reasons if not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pretrained import checkpoint, sources
from pretrained.load import tokenizer_of

# torch is imported inside functions: importing this package has to stay cheap.
if TYPE_CHECKING:
    from attention_core import TransformerConfig


@dataclass(frozen=True)
class CompatibilityReport:
    """The result of a compatibility check.

    obstacles: a message for each unsupported feature; empty if the model loads. shape: a one-line
    description; empty if it doesn't load. n_parameters: the number of parameters; 0 if it doesn't
    load. where: a message about its files; empty for a pasted text.
    """

    obstacles: tuple[str, ...]
    shape: str = ""
    n_parameters: int = 0
    where: str = ""

    @property
    def loads(self) -> bool:
        """Whether there are no obstacles."""
        return not self.obstacles


def check_text(text: str) -> CompatibilityReport:
    """Check the text of a config.json."""
    try:
        config = checkpoint.json_object(text.encode(), checkpoint.MAX_CONFIG_BYTES, "The text")
    except ValueError as error:
        return CompatibilityReport((str(error),))
    return check_config_dict(config)


def check_model(name: str) -> CompatibilityReport:
    """Check a folder in the models folder, or a Hub id whose files are on this machine.

    Doesn't use the network. Raises: ValueError for an invalid name or a model that isn't on this
    machine.
    """
    name = sources.check_name(name.strip())
    folders = sources.local_folders(name)
    if not folders and "/" in name:
        cached = sources.hub_cache_folder(name, "main")
        folders = [cached] if cached is not None else []
    if not folders:
        root = sources.models_root()
        place = (
            f"{name} isn't in the models folder or in the local Hub cache"
            if root is not None
            else f"{name} isn't in the local Hub cache, and ATTENTION_LAB_MODELS isn't set"
        )
        raise ValueError(f"{place}. Paste the text of its config.json instead.")
    try:
        return _check_folder(folders[0])
    except ValueError as error:
        return CompatibilityReport((str(error),))


def _check_folder(folder: Path) -> CompatibilityReport:
    """Check a folder; only reads the headers of its weights, and tied matrices."""
    config = checkpoint.read_json(folder / checkpoint.CONFIG_FILE, checkpoint.MAX_CONFIG_BYTES)
    n_files = len(checkpoint.weight_files(folder))
    obstacles = _obstacles(config)
    if obstacles:
        return CompatibilityReport(obstacles)
    from pretrained.weights import check_tensors, parts_outside_core

    state = checkpoint.read_state(folder)
    built = check_tensors(config, state, checkpoint.read_shapes(folder))
    tokenizer_of(folder.name, folder, config)
    files = "one file" if n_files == 1 else f"{n_files} files"
    where = f"Its weights are on this machine, in {files}."
    outside = parts_outside_core(config["model_type"], state)
    if outside:
        where += f" The core doesn't use {len(outside)} of the tensors: {', '.join(outside)}."
    return replace(_report(config, built), where=where)


def check_config_dict(config: Mapping[str, Any]) -> CompatibilityReport:
    """Check the parsed contents of a config.json."""
    obstacles = _obstacles(config)
    if obstacles:
        return CompatibilityReport(obstacles)
    from pretrained.weights import transformer_config

    try:
        return _report(config, transformer_config(config))
    except ValueError as error:
        return CompatibilityReport((f"In this config.json, {error}.",))


def _obstacles(config: Mapping[str, Any]) -> tuple[str, ...]:
    try:
        return tuple(checkpoint.obstacles(config))
    except ValueError as error:
        return (str(error),)


def _report(config: Mapping[str, Any], built: TransformerConfig) -> CompatibilityReport:
    """Describe the shape of a model that loads, and count its parameters."""
    from attention_core import Transformer
    from attention_core.costs.parameters import on_meta_device

    def count(n_layers: int) -> int:
        model = on_meta_device(Transformer, replace(built, n_layers=n_layers))
        return sum(parameter.numel() for parameter in model.parameters())

    one = count(1)
    scaled = ""
    if built.rope_scaling is not None:
        kind = checkpoint.rope_kind(checkpoint.rope_table(config))
        scaled = f", rotary positions with {kind} scaling by {built.rope_scaling.factor:g}"
    return CompatibilityReport(
        (),
        shape=f"{config['model_type']}: {built.n_layers} layers of {built.n_heads} query heads and "
        f"{built.kv_heads} key/value heads of size {built.d_head}, width {built.d_model}, "
        f"{built.vocab_size:,} tokens in the vocabulary, context {built.context_length:,}{scaled}",
        n_parameters=one + (built.n_layers - 1) * (count(2) - one),
    )
