"""What can be asked of a model server, and how questions and answers travel as frames.

Each ask has a function that answers it (`ANSWERS`, by the name of its address), and one with which
the site reads the frames of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any

from serving import models, race, recording
from serving.backend.frames import Frame
from serving.limits import MAX_MAP_TOKENS, OverLimit, check_tokens
from serving.race import Begun, CacheSize, Ended, RaceStep
from serving.recording import Recording, RunTensors
from serving.step_times import StepTime
from serving.timing import measurement
from serving.timing.measurement import Described, Doing, Timed, WarmedUp
from serving.timing.subjects import Question

CheckStop = Callable[[int], None]
Answer = Callable[[Mapping[str, Any], CheckStop], Iterator[Frame]]


# ---- a recorded pass


def answer_record(question: Mapping[str, Any], check_stop: CheckStop) -> Iterator[Frame]:
    """One frame with the tensors of a pass.

    Raises: ValueError for ids that are none of the model; OverLimit for too many of them.
    """
    model, ids = models.get(str(question["model"])), question["token_ids"]
    n_tokens = model.core.config.vocab_size
    if not ids or not all(isinstance(i, int) and 0 <= i < n_tokens for i in ids):
        raise ValueError(f"token_ids must be ids from 0 to {n_tokens - 1}, at least one")
    check_tokens(len(ids), MAX_MAP_TOKENS, "a recorded pass")
    check_stop(0)
    made = recording.record(model, ids)
    tensors = {field.name: getattr(made.tensors, field.name) for field in fields(RunTensors)}
    yield Frame("recording", {"scale": made.scale}, tensors)


def read_recording(frame: Frame) -> Recording:
    """The pass that a frame holds; KeyError for another frame."""
    tensors = {field.name: frame.tensors[field.name] for field in fields(RunTensors)}
    return Recording(RunTensors(**tensors), float(frame.facts["scale"]))


# ---- a race


def answer_race(question: Mapping[str, Any], check_stop: CheckStop) -> Iterator[Frame]:
    """A frame an event of `serving.race`."""
    known = {field.name for field in fields(race.Request)}
    request = race.Request(**{name: value for name, value in question.items() if name in known})
    for event in race.race(request, check_stop):
        yield Frame(type(event).__name__, asdict(event))


def read_event(frame: Frame) -> race.Event:
    """The event that a frame holds; KeyError or TypeError for another frame."""
    facts = frame.facts
    if frame.kind == Begun.__name__:
        return Begun(**facts)
    if frame.kind == Ended.__name__:
        return Ended(**facts)
    if frame.kind != RaceStep.__name__:
        raise KeyError(frame.kind)
    return RaceStep(
        cached=StepTime(**facts["cached"]),
        uncached=StepTime(**facts["uncached"]),
        difference=float(facts["difference"]),
        cache_size=CacheSize(**facts["cache_size"]),
    )


# ---- a measurement


def answer_measure(question: Mapping[str, Any], check_stop: CheckStop) -> Iterator[Frame]:
    """A frame an event of `serving.timing.measurement`."""
    known = {field.name for field in fields(Question)}
    asked = {name: value for name, value in question.items() if name in known}
    asked["contenders"] = tuple(asked.get("contenders", ()))
    for event in measurement.measure(Question(**asked), check_stop):
        yield Frame(type(event).__name__, asdict(event))


def read_measured(frame: Frame) -> measurement.Event:
    """The event that a frame holds; KeyError or TypeError for another frame."""
    facts = frame.facts
    if frame.kind == Timed.__name__:
        return Timed(**{**facts, "step": StepTime(**facts["step"])})
    if frame.kind == Described.__name__:
        terms = {name: (a, b, c) for name, (a, b, c) in facts["terms"].items()}
        return Described(**{**facts, "terms": terms})
    if frame.kind == WarmedUp.__name__:
        return WarmedUp(**facts)
    if frame.kind == Doing.__name__:
        return Doing(**facts)
    raise KeyError(frame.kind)


ANSWERS: dict[str, Answer] = {
    "record": answer_record,
    "race": answer_race,
    "measure": answer_measure,
}

# ---- errors: those that are the visitor's to read go to the site as what they are

_ERRORS = {kind.__name__: kind for kind in (OverLimit, ValueError, LookupError, OSError)}


def error_frame(error: Exception) -> Frame:
    """An error as the site shall raise it again: its nearest known class, and what it says."""
    kind = next(name for name, known in _ERRORS.items() if isinstance(error, known))
    return Frame("error", {"kind": kind, "says": str(error)})


def error_of(frame: Frame) -> Exception:
    """The error that a frame tells of."""
    return _ERRORS.get(str(frame.facts.get("kind")), ValueError)(str(frame.facts.get("says")))
