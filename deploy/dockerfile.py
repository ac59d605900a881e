"""Reads a Dockerfile and a .dockerignore, as far as this project's own ones go.

What an instruction does: https://docs.docker.com/reference/dockerfile/. Whatever is not understood
here raises ValueError with its line, so that `deploy/image_steps.py` leaves no step out in silence.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

# What the official Python images set.
BASE_PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
SHELL = ("/bin/sh", "-c")

_NAME = r"[A-Za-z_]\w*"
_VARIABLE = re.compile(rf"\$(?:({_NAME})|\{{({_NAME})\}})")
_SECONDS = {"s": 1.0, "m": 60.0}
# In a .dockerignore, each as `re.escape` writes it, the longer ones first.
_SIGNS = {r"\*\*/": "(?:.*/)?", r"\*\*": ".*", r"\*": "[^/]*", r"\?": "[^/]"}
_HEALTH_OPTIONS = ("interval", "timeout", "start-period", "start-interval", "retries")


@dataclass(frozen=True)
class Instruction:
    """One instruction: the line it begins on, its word in capitals, and the rest of it."""

    line: int
    word: str
    value: str


@dataclass(frozen=True)
class Step:
    """One change to the image: a RUN, a COPY or a WORKDIR, with all that is in force for it."""

    line: int
    word: str
    value: str
    user: str
    folder: str
    environment: Mapping[str, str]
    command: tuple[str, ...] = ()  # of a RUN
    sources: tuple[str, ...] = ()  # of a COPY
    target: str = ""  # of a COPY or a WORKDIR


@dataclass
class Image:
    """What a Dockerfile says: the steps to the image, and what is started from it."""

    base: str = ""
    steps: list[Step] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": BASE_PATH})
    user: str = "root"
    folder: str = "/"
    command: tuple[str, ...] = ()
    health: tuple[str, ...] = ()
    health_seconds: float = 30.0  # how long one question may take
    port: int = 0


def instructions(text: str) -> list[Instruction]:
    """The instructions of a Dockerfile; lines that end in a backslash go on in the next one."""
    found: list[Instruction] = []
    parts: list[str] = []
    first = 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        first = first or number
        parts.append(line.rstrip().removesuffix("\\"))
        if not line.rstrip().endswith("\\"):
            word, *value = "".join(parts).split(maxsplit=1)
            found.append(Instruction(first, word.upper(), "".join(value).strip()))
            parts, first = [], 0
    if parts:
        raise ValueError(f"Line {first}: the file ends where a backslash says that it goes on.")
    return found


def read(text: str, arguments: Mapping[str, str] | None = None) -> Image:
    """What a Dockerfile says, with these values for its ARGs instead of their defaults.

    Raises ValueError for an instruction or a form that is not understood, with its line, and for
    an argument that the file does not have.
    """
    reader = _Reader(arguments or {})
    for instruction in instructions(text):
        try:
            reader.take(instruction)
        except ValueError as error:
            raise ValueError(f"Line {instruction.line}: {error}") from None
    if not reader.image.base:
        raise ValueError("The file has no FROM.")
    missing = sorted(set(arguments or {}) - set(reader.declared))
    if missing:
        raise ValueError(f"The file has no ARG {', '.join(missing)}.")
    return reader.image


class _Reader:
    """Takes one instruction after the other and keeps what is in force."""

    def __init__(self, arguments: Mapping[str, str]) -> None:
        self.image = Image()
        self.declared: dict[str, str] = {}
        self._given = arguments
        self._words = {
            "FROM": self._from, "ENV": self._env, "ARG": self._arg, "WORKDIR": self._workdir,
            "COPY": self._copy, "RUN": self._run, "USER": self._user, "EXPOSE": self._expose,
            "HEALTHCHECK": self._healthcheck, "CMD": self._cmd,
        }  # fmt: skip

    def take(self, instruction: Instruction) -> None:
        """Take one instruction in; ValueError if it is not understood."""
        word, value = instruction.word, instruction.value
        if word not in self._words:
            raise ValueError(f"{word} is none of {', '.join(self._words)}.")
        if not value:
            raise ValueError(f"{word} says nothing.")
        if word in ("RUN", "COPY") and (value.startswith("--") or "<<" in value):
            raise ValueError(f"{word} with options or with text that follows is not understood.")
        if not self.image.base and word != "FROM":
            raise ValueError(f"{word} stands before FROM.")
        self._words[word](instruction)

    def _from(self, instruction: Instruction) -> None:
        if self.image.base or len(instruction.value.split()) != 1:
            raise ValueError("only one stage is understood: one FROM with one name.")
        self.image.base = instruction.value

    def _env(self, instruction: Instruction) -> None:
        new = dict(pair(item) for item in shlex.split(instruction.value))
        self.image.environment |= {name: self._expanded(value) for name, value in new.items()}

    def _arg(self, instruction: Instruction) -> None:
        [item, *more] = shlex.split(instruction.value)
        name, _, default = item.partition("=")
        if more or not re.fullmatch(_NAME, name):
            raise ValueError(f"{instruction.value!r} is not of the form NAME or NAME=DEFAULT.")
        self.declared[name] = self._given.get(name, self._expanded(default))

    def _workdir(self, instruction: Instruction) -> None:
        self.image.folder = self._in_folder(instruction.value)
        self._step(instruction, target=self.image.folder)

    def _user(self, instruction: Instruction) -> None:
        self.image.user = self._expanded(instruction.value)

    def _expose(self, instruction: Instruction) -> None:
        if not instruction.value.isdecimal():
            raise ValueError(f"{instruction.value!r} is not one port.")
        self.image.port = int(instruction.value)

    def _run(self, instruction: Instruction) -> None:
        self._step(instruction, command=words(instruction.value))

    def _cmd(self, instruction: Instruction) -> None:
        self.image.command = words(instruction.value)

    def _copy(self, instruction: Instruction) -> None:
        *sources, target = (self._expanded(part) for part in instruction.value.split())
        if not sources or re.search(r"[\[\]*?]", instruction.value):
            raise ValueError("COPY needs names without wildcards, and where they go.")
        if any(".." in PurePosixPath(source).parts for source in sources):
            raise ValueError("COPY names a file outside of the folder of the Dockerfile.")
        if len(sources) > 1 and not target.endswith("/"):
            raise ValueError(f"several files go into a folder, and {target!r} does not end in '/'.")
        ending = "/" if target.endswith("/") and target != "/" else ""
        names = tuple(source.strip("/") or "." for source in sources)
        self._step(instruction, sources=names, target=self._in_folder(target) + ending)

    def _healthcheck(self, instruction: Instruction) -> None:
        options, _, command = instruction.value.partition("CMD ")
        for option in options.split():
            name, _, value = option.removeprefix("--").partition("=")
            if name not in _HEALTH_OPTIONS:
                raise ValueError(f"{option!r} is no option of HEALTHCHECK that is understood.")
            if name == "timeout":
                self.image.health_seconds = seconds(value)
        if not command:
            raise ValueError("HEALTHCHECK without CMD is not understood.")
        self.image.health = words(command.strip())

    def _step(
        self,
        instruction: Instruction,
        command: tuple[str, ...] = (),
        sources: tuple[str, ...] = (),
        target: str = "",
    ) -> None:
        step = Step(
            instruction.line,
            instruction.word,
            " ".join(instruction.value.split()),
            self.image.user,
            self.image.folder,
            {**self.declared, **self.image.environment},
            command,
            sources,
            target,
        )
        self.image.steps.append(step)

    def _in_folder(self, value: str) -> str:
        """A path of the image as an absolute one, without a slash at its end."""
        return os.path.normpath(PurePosixPath(self.image.folder, self._expanded(value)))

    def _expanded(self, value: str) -> str:
        names = {**self.declared, **self.image.environment}
        if "$" in _VARIABLE.sub("", value):
            raise ValueError(f"{value!r} has a variable that is neither $NAME nor ${{NAME}}.")
        return _VARIABLE.sub(lambda match: names.get(match[1] or match[2], ""), value)


def words(value: str) -> tuple[str, ...]:
    """The program and its arguments: a JSON list, or a line for the shell."""
    if not value.startswith("["):
        return (*SHELL, value)
    try:
        listed = json.loads(value)
    except ValueError:
        listed = []
    if not listed or not all(isinstance(word, str) for word in listed):
        raise ValueError(f"{value!r} begins like a JSON list of texts and is none.")
    return tuple(listed)


def pair(item: str) -> tuple[str, str]:
    """A text such as NAME=VALUE as its two parts."""
    name, equals, value = item.partition("=")
    if not equals or not re.fullmatch(_NAME, name):
        raise ValueError(f"{item!r} is not of the form NAME=VALUE.")
    return name, value


def seconds(value: str) -> float:
    """A time such as 30s or 2m, in seconds."""
    match = re.fullmatch(r"(\d+)([sm])", value)
    if not match:
        raise ValueError(f"{value!r} is no time such as 30s or 2m.")
    return int(match[1]) * _SECONDS[match[2]]


class Ignored:
    """Which paths a .dockerignore leaves out: `*` stays within a folder, `**/` is any folder."""

    def __init__(self, text: str) -> None:
        lines = (line.strip() for line in text.splitlines())
        self._forms = [_form(line) for line in lines if line and not line.startswith("#")]

    def __call__(self, path: str) -> bool:
        """Whether a path, or a folder that it is in, is left out."""
        inside = PurePosixPath(path)
        parts = [str(part) for part in (inside, *inside.parents)]
        return any(form.fullmatch(part) for form in self._forms for part in parts)


def _form(pattern: str) -> re.Pattern[str]:
    if re.search(r"[!\[\]\\]", pattern):
        raise ValueError(f".dockerignore: {pattern!r} has a sign that is not understood.")
    form = re.escape(pattern.strip("/"))
    for sign, meaning in _SIGNS.items():
        form = form.replace(sign, meaning)
    return re.compile(form)


def files(context: Path, source: str, ignored: Ignored) -> Iterator[str]:
    """The files of a COPY's source, relative to the context; what is ignored is left out.

    Raises ValueError if there is none.
    """
    start = context / source
    if start.is_dir():
        names = sorted(_below(context, start, ignored))
    else:
        names = [source] if os.path.lexists(start) and not ignored(source) else []
    if not names:
        raise ValueError(f"COPY {source}: there is no such file, or it is ignored.")
    yield from names


def _below(context: Path, start: Path, ignored: Ignored) -> Iterator[str]:
    for folder, folders, names in os.walk(start):
        inside = Path(folder).relative_to(context)
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        folders[:] = [name for name in folders if not ignored((inside / name).as_posix())]
        for name in (*names, *links):
            path = (inside / name).as_posix()
            if not ignored(path):
                yield path
