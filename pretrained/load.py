"""Loads a model: our core with its weights, its tokenizer, and the transformers model."""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pretrained import checkpoint
from pretrained.catalog import catalog
from pretrained.names import check_name, display_name
from pretrained.sources import WeightsSource, find, folder_at, local_folders, unchanged
from pretrained.specs import ModelSpec, find_spec, spec_from_config

# torch and transformers are imported inside functions: importing this package has to stay cheap.
if TYPE_CHECKING:
    import torch

    from attention_core import Transformer
    from pretrained.tokenization.tokens import Tokenizer


_transformers_lock = threading.Lock()
# one lock for all models, because a lock inside a model couldn't be pickled or copied
_reference_lock = threading.Lock()


class WeightsMissing(LookupError):
    """A known model has no weights on this machine; the message says how to get them."""


@dataclass(frozen=True, eq=False)
class Pretrained:
    """A loaded model. It's shared between visitors, so it never changes after loading.

    core: our Transformer with the weights, in eval mode.
    tokenizer: converts text to ids and back.
    source: the location of the weights. `folder` is the folder with config and safetensors, which
        only differs for the bundled SmolLM2 (converted once into the user's cache).
    config: the contents of its config.json.

    >>> import torch
    >>> import pretrained
    >>> model = pretrained.load("bert-novels", device="cpu")
    >>> model.spec.title, model.spec.n_layers, model.core.config.d_model, model.dtype
    ('BERT novels', 6, 256, torch.float32)
    >>> tokens = model.tokenizer.encode("The old man")
    >>> tokens.labels
    ('The', 'old', 'man')
    >>> output = model.core(torch.tensor([tokens.ids]), record=True)
    >>> output.records[0].weights.shape  # (batch, heads, queries, keys) of layer 0
    torch.Size([1, 8, 3, 3])
    """

    core: Transformer
    tokenizer: Tokenizer
    source: WeightsSource
    name: str
    spec: ModelSpec
    folder: Path
    config: dict[str, Any]
    device: torch.device
    dtype: torch.dtype

    @property
    def reference(self) -> Any:
        """The transformers model with the same weights, dtype and device, and eager attention.

        This is a GPT2LMHeadModel, LlamaForCausalLM, BertForMaskedLM (if the checkpoint has that
        head) or BertModel without pooler. It's loaded on first use and cached.
        Raises ImportError if transformers isn't installed.
        """
        with _reference_lock:  # so that two threads don't load it twice
            return self._reference

    @cached_property
    def _reference(self) -> Any:
        return self.load_reference()

    def __getstate__(self) -> dict[str, Any]:
        """The state for a pickle or a copy, without the reference, which can be loaded again."""
        return {name: value for name, value in vars(self).items() if name != "_reference"}

    def load_reference(self) -> Any:
        """Load a new `reference` on every call, for callers that cache it themselves.

        Raises ImportError if transformers isn't installed, and ValueError if the model's files have
        changed since the core was loaded.
        """
        options: dict[str, Any] = {}
        with unchanged(self.source):
            stored = checkpoint.read_state(_folder_of(self.source))
            if self.spec.architecture == "gpt2":
                class_name = "GPT2LMHeadModel"
            elif self.spec.architecture == "llama":
                class_name = "LlamaForCausalLM"
            elif any(name.startswith("cls.predictions.") for name in stored):
                class_name = "BertForMaskedLM"
            else:
                class_name = "BertModel"
                options["add_pooling_layer"] = False
            # read the tensors here, because transformers would memory-map the files
            state = {
                name: tensor.to(self.dtype) if tensor.is_floating_point() else tensor
                for name, tensor in stored.items()
            }
        with quiet_transformers() as transformers:
            model_class = getattr(transformers, class_name)
            model = model_class.from_pretrained(
                None,
                config=model_class.config_class.from_dict(copy.deepcopy(self.config)),
                state_dict=state,
                attn_implementation="eager",
                dtype=self.dtype,
                **options,
            )
        return model.to(self.device).eval()


@contextmanager
def quiet_transformers() -> Iterator[Any]:
    """The transformers library without progress bars and warnings about a missing pooler.

    Only one thread at a time, because the settings are process-wide, and two threads that import
    its classes at the same time may get an incomplete module.
    """
    with _transformers_lock:
        import transformers

        logging: Any = transformers.utils.logging  # untyped
        level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            yield transformers
        finally:
            logging.set_verbosity(level)
            if bars:
                logging.enable_progress_bar()


def load(
    model: str | os.PathLike[str],
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
) -> Pretrained:
    """Load a model from this machine; never uses the network.

    model: a catalog name, a folder in ATTENTION_LAB_MODELS, the Hub id of a downloaded model, or
    the
        path of a folder with a config.json: a path object, or a string such as "/models/mine",
        "./mine" or "models/mine". If you give a path, tokenizer files may be missing.
    device: by default CUDA if available, otherwise the CPU.
    dtype: float32 (the default), float16 or bfloat16, as a torch dtype or its name.
    Raises WeightsMissing for a known model that isn't on this machine, and ValueError for an
    unknown name, an unsupported or damaged checkpoint, files that change while they are read, an
    unknown dtype, or an unknown or unavailable device.

    >>> import torch
    >>> import pretrained
    >>> model = pretrained.load("gpt2-novels", device="cpu")
    >>> ids = model.tokenizer.encode("It was a dark and stormy").ids
    >>> logits = model.core(torch.tensor([ids])).logits
    >>> model.tokenizer.decode([int(logits[0, -1].argmax())])
    ' night'
    """
    folder = folder_at(model)
    if folder is not None:
        if not (folder / checkpoint.CONFIG_FILE).is_file():
            raise _unknown_error(str(model))
        return _load_from(WeightsSource("folder", folder), folder.name, device, dtype, by_path=True)
    try:
        check_name(str(model))
    except ValueError as error:
        raise _unknown_error(str(model)) from error
    return load_by_name(str(model), device=device, dtype=dtype)


def load_by_name(
    name: str,
    *,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
) -> Pretrained:
    """Like `load`, but only for names, never paths, so the name may come from a visitor."""
    source = find(name)
    if source is None:
        raise _not_found_error(name)
    return _load_from(source, name, device, dtype)


def _load_from(
    source: WeightsSource,
    name: str,
    device: str | torch.device | None,
    dtype: str | torch.dtype | None,
    *,
    by_path: bool = False,
) -> Pretrained:
    """Load the model of a source; by_path: use the folder's name as its title."""
    import torch

    from pretrained.weights import core_from_state_dict

    target, precision = usable_device(device), _dtype(dtype)
    with unchanged(source):
        folder = _folder_of(source)
        config = checkpoint.read_config(folder)
        spec = _spec_of_path(name, config) if by_path else _spec(name, config)
        tokenizer = tokenizer_of(name, folder, config, may_be_missing=by_path)
        with torch.inference_mode(False):  # weights created in inference mode would stay in it
            core = core_from_state_dict(config, checkpoint.read_state(folder))
            core = core.to(target, precision).eval()
    _check_first_pass(name, core)
    return Pretrained(
        core=core,
        tokenizer=tokenizer,
        source=source,
        name=spec.name,
        spec=spec,
        folder=folder,
        config=config,
        device=target,
        dtype=precision,
    )


def tokenizer_of(
    name: str, folder: Path, config: dict[str, Any], *, may_be_missing: bool = False
) -> Tokenizer:
    """The tokenizer in a model's folder; a `MissingTokenizer` if it may be missing.

    Raises ValueError if its ids don't fit the model, or if it's required but missing.
    """
    from pretrained.tokenization import selection
    from pretrained.tokenization.tokens import MissingTokenizer, TokenizerMissing, end_ids_of
    from pretrained.weights import transformer_config

    n_known = transformer_config(config).vocab_size
    try:
        tokenizer = selection.tokenizer_for_folder(folder, config)
    except TokenizerMissing as error:
        if not may_be_missing:
            raise
        return MissingTokenizer(str(error), n_known, end_ids_of(config))
    if tokenizer.vocab_size > n_known:
        raise ValueError(
            f"The tokenizer of {name} has {tokenizer.vocab_size} tokens, but the model only has "
            f"{n_known}. Use the tokenizer files that belong to this model."
        )
    return tokenizer


def _folder_of(source: WeightsSource) -> Path:
    """The folder with config and safetensors: the source's own, or the conversion of its GGUF.

    Converted files are checked against their hashes, and converted again if necessary.
    """
    if source.kind == "bundled" and next(source.path.glob("*.gguf"), None) is not None:
        from pretrained import bundled_smollm2

        return bundled_smollm2.converted_folder(source.path)
    return source.path


def _spec(name: str, config: dict[str, Any]) -> ModelSpec:
    """The catalog's spec of a model, or one derived from the configuration.

    Raises ValueError if a folder has a known model's name but contains a different model, because
    its title would be wrong.
    """
    read_spec = spec_from_config(name, config)
    known = find_spec(name)
    if known is None:
        return read_spec

    def shape(spec: ModelSpec) -> tuple[str, int, int, int]:
        return spec.architecture, spec.n_layers, spec.n_heads, spec.n_kv_heads

    if shape(known) != shape(read_spec):
        raise ValueError(
            f"The folder for {known.title} contains a different model: {read_spec.architecture} "
            f"with {read_spec.n_layers} layers of {read_spec.n_heads} heads. Rename the folder."
        )
    return known


def _spec_of_path(name: str, config: dict[str, Any]) -> ModelSpec:
    """A spec with the folder's name as its title, because the weights may have been edited."""
    return replace(spec_from_config(name, config), note="From a folder on this machine.")


def _check_first_pass(name: str, core: Transformer) -> None:
    """Raise ValueError if a pass over a single token overflows the range of the dtype.

    Every later position attends to this one. Overflows at later positions are detected by the pass
    in which they occur (`attention_core.checks.require_finite`).
    """
    import torch

    from attention_core.checks import NotFiniteError

    parameter = next(core.parameters())
    try:
        with torch.inference_mode():
            core(torch.zeros(1, 1, dtype=torch.long, device=parameter.device))
    except NotFiniteError as error:
        raise ValueError(
            f"The weights of {name} produce infinite values or NaN in "
            f"{str(parameter.dtype).removeprefix('torch.')}."
        ) from error


def _not_found_error(name: str) -> Exception:
    """The error for a name without a source: unusable folder, missing weights or unknown name."""
    for folder in local_folders(name):
        try:
            checkpoint.read_config(folder)
            checkpoint.weight_files(folder)
        except ValueError as error:
            return ValueError(f"The model folder {folder.name} can't be used: {error}")
    spec = find_spec(name)
    if spec is not None:
        ways = [f"download it from the Hub ({spec.download_bytes / 1e6:,.0f} MB)"]
        if spec.package is not None:
            ways.append("install the packages in requirements-weights.txt")
        ways.append(f"put its files into ATTENTION_LAB_MODELS/{spec.name}")
        return WeightsMissing(
            f"The weights of {spec.title} aren't on this machine. To get them, "
            f"{', or '.join(ways)}."
        )
    return _unknown_error(name)


def _unknown_error(name: str) -> ValueError:
    """The error for a name or path that isn't a model."""
    ready = [entry.spec.name for entry in catalog() if entry.state == "ready"]
    return ValueError(
        f"There is no model {display_name(name)} on this machine. pretrained.load accepts the "
        "name of an "
        f"available model ({', '.join(ready) or 'none'}), the id of a downloaded Hub model, a "
        "folder in ATTENTION_LAB_MODELS, or the path of a folder with a config.json, such as "
        "'./mine'."
    )


def usable_device(device: str | torch.device | None) -> torch.device:
    """The torch device to use; None means CUDA if available, otherwise the CPU.

    Raises ValueError for a device that is unknown or unavailable on this machine or in this build
    of torch, and for the meta device, whose tensors have no values.
    """
    import torch

    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        target = torch.device(device)
        # torch has no common check for availability, and each backend raises different errors
        torch.empty(1, device=target)
    except (RuntimeError, TypeError, AssertionError, ImportError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0]
        raise ValueError(f"The device {device!r} can't be used here: {reason}.") from error
    if target.type == "meta":
        raise ValueError("Tensors on the device 'meta' have no values; use 'cpu' or 'cuda'.")
    return target


def _dtype(dtype: str | torch.dtype | None) -> torch.dtype:
    import torch

    if dtype is None:
        return torch.float32
    allowed = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
    value = allowed.get(dtype) if isinstance(dtype, str) else dtype
    if value is None or value not in allowed.values():
        raise ValueError(f"The dtype {dtype!r} isn't supported; use {', '.join(allowed)}.")
    return value
