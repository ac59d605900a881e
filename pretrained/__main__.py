"""Command line for models: list them, compare one with transformers, or download them.

python -m pretrained list
python -m pretrained check NAME_OR_FOLDER
python -m pretrained download NAME [NAME ...]

Only `download` uses the network.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pretrained import checkpoint, comparison, compatibility, prepare, settings, sizes
from pretrained.catalog import catalog
from pretrained.comparison import Differences
from pretrained.load import Pretrained, load
from pretrained.sources import folder_at

_COLUMNS = "{:24} {:24} {:13} {:>6} {:>5} {:>9}"
_MAX_TOKENS = 64  # in the pass that is compared
# For float32 passes through many layers, relative to the largest value. A wrong weight causes
# differences of 1e-2 and more.
TOLERANCE = 1e-4


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit status, which is 1 if a model fails."""
    parser = argparse.ArgumentParser(prog="python -m pretrained")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list the models on this machine")
    check = commands.add_parser("check", help="compare a forward pass with transformers")
    check.add_argument("model", help="the name of a model, or the path of its folder")
    download = commands.add_parser("download", help="download models from the Hugging Face Hub")
    download.add_argument("models", nargs="+", metavar="name", help="a catalog name or a Hub id")
    options = parser.parse_args(arguments)
    if options.command == "list":
        return _list()
    if options.command == "download":
        return _download(options.models)
    try:
        return _check(options.model)
    except (ValueError, LookupError, OSError, ImportError) as error:
        print(error, file=sys.stderr)
        return 1


def _list() -> int:
    """Print a line for each available model, then the names of downloadable ones."""
    entries = catalog()
    print(_COLUMNS.format("NAME", "TITLE", "KIND", "LAYERS", "HEADS", "SIZE"))
    for entry in entries:
        spec = entry.spec
        if entry.source is not None:
            size = f"{sizes.float32_bytes(spec, entry.source) / 1e6:,.0f} MB"
            kind = f"{spec.architecture} {spec.role}"
            print(_COLUMNS.format(spec.name, spec.title, kind, spec.n_layers, spec.n_heads, size))
    print("Sizes are for the loaded weights in float32.")
    missing = [entry.spec.name for entry in entries if entry.source is None]
    if missing:
        print(f"Available for download: {', '.join(missing)}")
    return 0


def _download(names: Sequence[str]) -> int:
    for name in names:
        print(f"{name}: downloading if it's missing", flush=True)
        if not prepare.fetch(name):
            return 1
        print(f"{name}: ready")
    return 0


def _check(model: str) -> int:
    """Load a model in float32 on the CPU and compare a forward pass with transformers."""
    folder = folder_at(model)
    if folder is not None and (folder / checkpoint.CONFIG_FILE).is_file():
        config = checkpoint.read_json(folder / checkpoint.CONFIG_FILE, checkpoint.MAX_CONFIG_BYTES)
        answer = compatibility.check_config_dict(config)
        if not answer.loads:
            print("\n".join(answer.obstacles), file=sys.stderr)
            return 1
    loaded = load(model, device="cpu")
    print(f"{loaded.spec.title}, {compatibility.check_config_dict(loaded.config).shape}")
    ids = _ids(loaded)
    result = comparison.compare(loaded.core, comparison.load_reference(loaded), ids)
    _print_differences(result, len(ids))
    if _largest_relative(result) > TOLERANCE:
        print("The core and transformers differ by more than rounding.", file=sys.stderr)
        return 1
    print("The core and transformers agree up to rounding.")
    return 0


def _ids(model: Pretrained) -> list[int]:
    """Token ids spread over the whole vocabulary, which work without a tokenizer too."""
    config = model.core.config
    n_tokens = min(_MAX_TOKENS, config.context_length)
    return [token * config.vocab_size // n_tokens for token in range(n_tokens)]


def _print_differences(result: Differences, n_tokens: int) -> None:
    print(f"Largest differences from {result.reference} in a pass of {n_tokens} tokens:")
    print(f"  attention weights  {max(result.weights):.1e}")
    print(f"  hidden states      {max(result.hidden):.1e} of {max(result.hidden_sizes):.4g}")
    if result.logits is not None:
        print(f"  logits             {result.logits:.1e}")


def _largest_relative(result: Differences) -> float:
    """The largest difference; for values above 1, relative to their size."""
    sizes_of_states = [max(size, 1.0) for size in result.hidden_sizes]
    pairs = zip(result.hidden, sizes_of_states, strict=True)
    states = [difference / size for difference, size in pairs]
    logits = 0.0 if result.logits is None else result.logits / sizes_of_states[-1]
    return max(result.embedding, *result.weights, *states, logits)


if __name__ == "__main__":
    settings.check_or_exit()
    sys.exit(main())
