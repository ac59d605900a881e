"""The site's environment variables: names, defaults, and allowed values.

Programs call `check_or_exit` when they start, so an invalid value ends them with a one-line message
instead of being ignored. Later, `read` returns a value with the same parser.
"""

from __future__ import annotations

import ipaddress
import math
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from pretrained.names import check_name

T = TypeVar("T")

MAX_SITES = 64
_MAX_QUOTED_CHARACTERS = 60  # characters of a value in an error message

_ON, _OFF = frozenset({"on", "1", "true", "yes"}), frozenset({"off", "0", "false", "no"})
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME = rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*"
_HOST = re.compile(rf"{_NAME}|\[[0-9a-f:]+\]")
_SITE = re.compile(rf"https?://{_NAME}(?::(\d{{1,5}}))?")
_URL_HOST = re.compile(
    r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*"
)
_NUMBER = re.compile(r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+", re.ASCII)


@dataclass(frozen=True)
class EnvironmentVariable(Generic[T]):
    """An environment variable.

    default: the value if the variable is unset or blank. parse: converts any other text, or raises
    ValueError. allowed: a description of valid values, for the error message. is_secret: keep the
    value out of the error message.
    """

    name: str
    default: T
    parse: Callable[[str], T]
    allowed: str
    is_secret: bool = False

    def read(self) -> T:
        """The current value. Raises ValueError with the name, the text and the allowed values."""
        text = os.environ.get(self.name, "").strip()
        if not text:
            return self.default
        try:
            return self.parse(text)
        except ValueError:
            result = "is invalid" if self.is_secret else f"is {_quote(text)}"
            raise ValueError(f"{self.name} {result}. It must be {self.allowed}.") from None


def _quote(text: str) -> str:
    """A text quoted as ASCII, without control characters, cut to `_MAX_QUOTED_CHARACTERS`."""
    return ascii(text[:_MAX_QUOTED_CHARACTERS]) + (
        "..." if len(text) > _MAX_QUOTED_CHARACTERS else ""
    )


def _switch(text: str) -> bool:
    if text.lower() in _ON | _OFF:
        return text.lower() in _ON
    raise ValueError


def _number(text: str) -> float:
    """A finite number in ASCII digits."""
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise ValueError
    return float(text)


def _bytes_of_gigabytes(text: str) -> int:
    n_bytes = _number(text) * 1e9
    if not (math.isfinite(n_bytes) and n_bytes >= 1):
        raise ValueError
    return int(n_bytes)


def _site_count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= MAX_SITES:
        raise ValueError
    return int(text)


def _replicas(text: str) -> tuple[int, int]:
    """The minimum and maximum number of replicas."""
    match = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", text)
    if match is None:
        raise ValueError
    fewest, most = int(match[1]), int(match[2] or match[1])
    if not 1 <= fewest <= most:
        raise ValueError
    return fewest, most


def _gpus(text: str) -> float:
    """A fraction of a GPU, or a whole number of GPUs, as Ray requires."""
    number = _number(text)
    if number > 1 and not number.is_integer():
        raise ValueError
    return number


def _url(text: str) -> str:
    parts = urlsplit(text)
    host = parts.hostname or ""
    if ":" in host:
        ipaddress.IPv6Address(host)
    elif not _URL_HOST.fullmatch(host):
        raise ValueError
    is_plain = text.isascii() and text.isprintable() and " " not in text
    if not is_plain or parts.scheme not in ("http", "https") or parts.query or parts.fragment:
        raise ValueError
    if parts.port == 0:  # reading the port raises ValueError if it's invalid
        raise ValueError
    return text.rstrip("/")


def _folder(text: str) -> Path:
    # os.path returns False for unreadable paths, and keeps "~" if there is no home folder
    folder = os.path.expanduser(text)
    if not os.path.isdir(folder) or not os.access(folder, os.R_OK | os.X_OK):
        raise ValueError
    return Path(folder)


def _folder_to_create(text: str) -> Path:
    """An existing folder, or a path inside one."""
    path = Path(os.path.expanduser(text))
    whole = path.absolute()
    nearest = next(place for place in (whole, *whole.parents) if os.path.lexists(place))
    if str(path).startswith("~") or not os.path.isdir(nearest):
        raise ValueError
    return path


def _hosts(text: str) -> tuple[str, ...]:
    return _words(text, lambda name: bool(_HOST.fullmatch(name)))


def _embedding_sites(text: str) -> tuple[str, ...]:
    def is_site(name: str) -> bool:
        match = _SITE.fullmatch(name)
        return match is not None and 1 <= int(match[1] or 443) <= 65_535

    return _words(text, is_site)


def _words(text: str, is_allowed: Callable[[str], bool]) -> tuple[str, ...]:
    names = tuple(text.replace(",", " ").lower().split())
    if not names or not all(map(is_allowed, names)):
        raise ValueError
    return names


def _model_names(text: str) -> tuple[str, ...]:
    names = tuple(filter(None, (name.strip() for name in text.split(","))))
    if not names:
        raise ValueError
    return tuple(check_name(name) for name in names)


def _token(text: str) -> str:
    if not text.isprintable():  # it couldn't be sent in a header
        raise ValueError
    return text


def _json(text: str) -> bool:
    if text.lower() != "json":
        raise ValueError
    return True


_SWITCH_VALUES = "on (or 1, true, yes) or off (or 0, false, no)"
_NAMES = "a comma-separated list of models, such as gpt2, all-minilm-l6-v2"

CACHE = EnvironmentVariable[Path | None](
    "ATTENTION_LAB_CACHE", None, _folder_to_create, "a folder, or a path where one can be created"
)
DOWNLOADS = EnvironmentVariable("ATTENTION_LAB_DOWNLOADS", True, _switch, _SWITCH_VALUES)
EMBED = EnvironmentVariable[tuple[str, ...]](
    "ATTENTION_LAB_EMBED", (), _embedding_sites, "sites such as https://moodle.example.org"
)
DEFAULT_MODELS = EnvironmentVariable[tuple[str, ...]](
    "ATTENTION_LAB_DEFAULT_MODELS", (), _model_names, _NAMES
)
HOSTS = EnvironmentVariable[tuple[str, ...]](
    "ATTENTION_LAB_HOSTS", (), _hosts, "host names such as lab.example.org or *.example.org"
)
LOG_JSON = EnvironmentVariable("ATTENTION_LAB_LOG", False, _json, "json, or empty for plain text")
MAX_DOWNLOAD = EnvironmentVariable(
    "ATTENTION_LAB_MAX_DOWNLOAD_GB",
    8_000_000_000,
    _bytes_of_gigabytes,
    "a number of gigabytes above 0, such as 8",
)
MEMORY = EnvironmentVariable[int | None](
    "ATTENTION_LAB_MEMORY_GB",
    None,
    _bytes_of_gigabytes,
    "a number of gigabytes above 0, such as 2.7",
)
METRICS_TOKEN = EnvironmentVariable(
    "ATTENTION_LAB_METRICS_TOKEN", "", _token, "a text without control characters", is_secret=True
)
MODELS = EnvironmentVariable[Path | None](
    "ATTENTION_LAB_MODELS", None, _folder, "a folder that exists and can be read"
)
PREFETCH = EnvironmentVariable[tuple[str, ...]](
    "ATTENTION_LAB_PREFETCH", (), _model_names, f"{_NAMES}, or Hub ids such as org/name"
)
REPLICAS = EnvironmentVariable(
    "ATTENTION_LAB_REPLICAS",
    (1, 1),
    _replicas,
    "a number of replicas such as 2, or a range like 1-4",
)
REPLICA_GPUS = EnvironmentVariable(
    "ATTENTION_LAB_REPLICA_GPUS", 0.0, _gpus, "a fraction of a GPU such as 0.25, or a whole number"
)
SERVE_URL = EnvironmentVariable(
    "ATTENTION_LAB_SERVE_URL", "", _url, "an http or https URL such as http://models:8600"
)
SITES = EnvironmentVariable[int | None](
    "ATTENTION_LAB_SITES", None, _site_count, f"a whole number from 1 to {MAX_SITES}"
)
WARMUP = EnvironmentVariable("ATTENTION_LAB_WARMUP", True, _switch, _SWITCH_VALUES)
HUB_ENDPOINT = EnvironmentVariable(
    "HF_ENDPOINT", "https://huggingface.co", _url, "the http or https URL of a model hub"
)
HUB_CACHE = EnvironmentVariable[Path | None](
    "HF_HUB_CACHE", None, _folder_to_create, "a folder, or a path where one can be created"
)

ALL: tuple[EnvironmentVariable[object], ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, EnvironmentVariable)
)


def check() -> None:
    """Raise ValueError for the first variable with an invalid value."""
    for setting in ALL:
        setting.read()


def check_or_exit() -> None:
    """Exit with a one-line message on standard error if a variable has an invalid value."""
    try:
        check()
    except ValueError as error:
        print(error, file=sys.stderr, flush=True)
        raise SystemExit(2) from None
