"""The Dockerfile's steps on a machine without Docker: `python -m deploy.image_steps --root FOLDER`.

Reads the Dockerfile, carries its steps out one by one in a clean root folder with chroot, each as
the user and with the environment that are in force there, starts its command as `compose.yaml` does
(everything read-only but what is named there, no new privileges), waits until the health check
succeeds and /readyz answers 200, says what each of them took, and ends everything. The started site
has a network of its own with nobody else in it, so that it can fetch nothing. With `--print` the
steps are printed, and nothing is done.

It has to be started by root, on Linux. The clean root stands for the image that FROM names. With
debootstrap it is made so; the virtual environment puts `python` and `pip` where the official Python
images have them, and lets pip install, which Debian's own Python refuses:

    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm FOLDER
    chroot FOLDER python3 -m venv /usr/local

It is the same Debian release and the same Python 3.11 as an official image of that release, not the
same files: what Docker itself does (layers, its cache, its network, limits of memory) is not tried.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from deploy import dockerfile

CONTEXT = Path(__file__).resolve().parents[1]
# As compose.yaml starts it; a test compares.
IN_MEMORY = ("/tmp", "/home/lab")
VOLUMES = ("/var/lib/attention-lab/hub",)
BOUND_SECONDS = 300.0

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
# Mounts and processes end with the program: they are in namespaces of their own.
_ALONE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private")
_OFFLINE = ("unshare", "--net", "sh", "-c", 'ip link set dev lo up && exec "$@"', "sh")
_ASK = (
    "import urllib.request as r; "
    "print(r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:%d%s', timeout=30).status)"
)


class Root:
    """A folder that programs see as the whole machine.

    shown: paths of this machine that the steps see at the same place, such as pip's certificates.
    Raises ValueError for a folder that holds no system, and for the machine's own root.
    """

    def __init__(self, folder: Path, shown: Sequence[Path] = ()) -> None:
        self.folder, self._shown = folder.resolve(), tuple(shown)
        if self.folder == Path("/") or not self.at("/bin/sh").exists():
            raise ValueError(f"{folder} is no clean root: it is / or has no /bin/sh.")

    def at(self, path: str) -> Path:
        """Where a path of the root is on this machine."""
        return self.folder / path.lstrip("/")

    def account(self, user: str) -> tuple[int, int]:
        """The numbers of a user and its group; a number that has no entry has the group 0.

        Raises ValueError for a name that the root does not know.
        """
        for line in self.at("/etc/passwd").read_text(encoding="utf-8").splitlines():
            name, _, number, group, *_ = line.split(":")
            if user in (name, number):
                return int(number), int(group)
        if not user.isdecimal():
            raise ValueError(f"The root has no user {user!r}.")
        return int(user), 0

    def enter(self, command: Sequence[str], user: str, folder: str) -> list[str]:
        """A command of this machine that runs one of the root."""
        number, group = self.account(user)
        start = ("/bin/sh", "-c", 'cd "$0" && exec "$@"', folder)
        names = (f"--userspec={number}:{group}", "--groups=")
        return ["chroot", *names, str(self.folder), *start, *command]

    def open(self) -> None:
        """Put what a container has into the root: processes, devices, names of other machines."""
        mount("--bind", self.folder, self.folder)
        mount("-t", "proc", "proc", self._place("/proc"))
        mount("--rbind", "/sys", self._place("/sys"))
        mount("-t", "tmpfs", "-o", "mode=755", "dev", self._place("/dev"))
        for name in DEVICES:
            mount("--bind", f"/dev/{name}", self._place(f"/dev/{name}", is_file=True))
        self.at("/dev/fd").symlink_to("/proc/self/fd")
        mount("-t", "tmpfs", "-o", "mode=1777", "shm", self._place("/dev/shm"))
        for path in (Path("/etc/resolv.conf"), Path("/etc/hosts"), *self._shown):
            place = self._place(str(path), is_file=path.is_file())
            mount("--bind", path, place)
            mount("-o", "remount,bind,ro", place)

    def seal(self) -> None:
        """Hide what only the steps saw, and leave nothing to write but what compose names."""
        for path in self._shown:
            subprocess.run(["umount", self.at(str(path))], check=True)
        for name in VOLUMES:
            mount("--bind", self.at(name), self.at(name))
        for name in IN_MEMORY:
            mount("-t", "tmpfs", "-o", "mode=1777,nosuid,nodev,noexec", "tmp", self._place(name))
        mount("-o", "remount,bind,ro", self.folder)

    def _place(self, path: str, is_file: bool = False) -> Path:
        """Where something is mounted; it is made if it is not there."""
        place = self.at(path)
        (place.parent if is_file else place).mkdir(parents=True, exist_ok=True)
        if is_file:
            place.touch()
        return place


def mount(*arguments: str | Path) -> None:
    """Mount something; RuntimeError if that fails, which has then said why."""
    if subprocess.run(["mount", *arguments], check=False).returncode:
        raise RuntimeError(f"mount {' '.join(map(str, arguments))} failed")


def carry_out(step: dockerfile.Step, root: Root, extra: Mapping[str, str]) -> None:
    """Carry one step out; RuntimeError if its program fails.

    extra: variables that a RUN sees besides its own, such as pip's on this machine.
    """
    if step.word == "RUN":
        command = root.enter(step.command, step.user, step.folder)
        status = subprocess.run(command, env={**step.environment, **extra}, check=False).returncode
        if status:
            raise RuntimeError(f"line {step.line}: RUN ended with {status}")
    elif step.word == "COPY":
        copy(step, root, CONTEXT)
    else:
        root.at(step.target).mkdir(parents=True, exist_ok=True)


def copy(step: dockerfile.Step, root: Root, context: Path) -> None:
    """Copy files of the context into the root; all of them belong to root, whoever the user is."""
    patterns = context / ".dockerignore"
    text = patterns.read_text(encoding="utf-8") if patterns.exists() else ""
    ignored = dockerfile.Ignored(text)
    for source in step.sources:
        is_folder = (context / source).is_dir()
        for name in dockerfile.files(context, source, ignored):
            place = root.at(step.target)
            if is_folder:
                place /= Path(name).relative_to(source)
            elif step.target.endswith("/") or place.is_dir():
                place /= Path(name).name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(context / name, place, follow_symlinks=False)
            os.chown(place, 0, 0, follow_symlinks=False)


class Site:
    """The command of an image, running in a sealed root."""

    def __init__(self, image: dockerfile.Image, root: Root, extra: Mapping[str, str]) -> None:
        self._image, self._root = image, root
        self._environment = {**image.environment, **extra}
        command = root.enter(image.command, image.user, image.folder)
        self._process = subprocess.Popen(
            [*_OFFLINE, "setpriv", "--no-new-privs", *command], env=self._environment
        )

    def wait_until(self, command: Sequence[str], seconds: float, bound: float) -> None:
        """Ask again and again until a command succeeds beside the site.

        seconds: how long one question may take. Raises RuntimeError where the site ends, or where
        the bound, in seconds too, is reached.
        """
        namespace = f"--net={self._root.at(f'/proc/{self._process.pid}/ns/net')}"
        enter = self._root.enter(command, self._image.user, self._image.folder)
        end, said = time.monotonic() + bound, "nothing"
        while time.monotonic() < end:
            if self._process.poll() is not None:
                raise RuntimeError(f"the site ended with {self._process.returncode}")
            try:
                answer = subprocess.run(
                    ["nsenter", namespace, *enter],
                    env=self._environment,
                    check=False,
                    timeout=seconds,
                    capture_output=True,
                    text=True,
                )
            except subprocess.TimeoutExpired:
                said = f"nothing within {seconds:g} s"
            else:
                if answer.returncode == 0:
                    return
                said = (answer.stderr.strip().splitlines() or ["nothing"])[-1]
            time.sleep(0.5)
        raise RuntimeError(f"not after {bound:g} s; the last answer was: {said}")

    def is_like(self) -> str:
        """Who the site runs as, what it may do, and the most memory that it had."""
        status = self._root.at(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        lines = dict(line.split(":\t", 1) for line in status.splitlines())
        gigabytes = int(lines["VmHWM"].split()[0]) * 1024 / 1e9
        return (
            f"user {lines['Uid'].split()[0]}, group {lines['Gid'].split()[0]}, "
            f"capabilities {int(lines['CapEff'], 16)}, no new privileges {lines['NoNewPrivs']}, "
            f"at most {gigabytes:.2f} GB of memory"
        )

    def stop(self) -> int:
        """End the site as Docker does; its exit status."""
        self._process.terminate()
        try:
            return self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


class Clock:
    """Prints what is done, and then how long it took."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def begin(self, what: str) -> None:
        """Say what begins."""
        print(f"== {what}", flush=True)
        self._start = time.monotonic()

    def end(self, what: str = "done") -> None:
        """Say that it ended."""
        print(f"   {what} after {time.monotonic() - self._start:.1f} s", flush=True)


def run(image: dockerfile.Image, root: Root, options: argparse.Namespace) -> None:
    """Carry all steps out, start the site, wait until it is ready, and end it."""
    clock, whole = Clock(), Clock()
    root.open()
    for step in image.steps:
        clock.begin(described(step))
        carry_out(step, root, dict(options.env))
        clock.end()
    root.seal()
    clock.begin(f"CMD as user {image.user}, in {image.folder}: {' '.join(image.command)}")
    site = Site(image, root, dict(options.site_env))
    try:
        site.wait_until(image.health, image.health_seconds, options.bound)
        clock.end("HEALTHCHECK succeeded")
        for path in ("/readyz", "/"):
            ask = ("python", "-c", _ASK % (image.port, path))
            site.wait_until(ask, options.bound, options.bound)
            clock.end(f"{path} answered 200")
        print(f"   {site.is_like()}", flush=True)
        cannot = ("sh", "-c", "! (: > written) 2>/dev/null")
        site.wait_until(cannot, image.health_seconds, image.health_seconds)
        print(f"   nothing can be written into {image.folder}", flush=True)
    finally:
        print(f"   ended with {site.stop()}", flush=True)
    whole.end("all of it")


def described(step: dockerfile.Step) -> str:
    """A step in one line: where it stands, who does it and where."""
    return f"line {step.line}, {step.user}, {step.folder}: {step.word} {step.value}"


def plan(image: dockerfile.Image) -> str:
    """What would be done, for a reader."""
    ending = (
        f"health: {' '.join(image.health)}",
        f"command as {image.user} in {image.folder}: {' '.join(image.command)}",
    )
    return "\n".join((f"from {image.base}", *map(described, image.steps), *ending))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(prog="python -m deploy.image_steps")
    pair = dockerfile.pair
    parser.add_argument("--root", type=Path, help="a clean root with Python in it; it is changed")
    parser.add_argument("--print", action="store_true", help="say what would be done, and stop")
    parser.add_argument(
        "--arg",
        type=pair,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="the value of an ARG, as docker build --build-arg",
    )
    parser.add_argument(
        "--env",
        type=pair,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable that every RUN sees besides its own, such as PIP_FIND_LINKS",
    )
    parser.add_argument(
        "--site-env",
        type=pair,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable that the started site sees, as docker run --env",
    )
    parser.add_argument(
        "--show",
        type=Path,
        action="append",
        default=[],
        metavar="PATH",
        help="a path of this machine that the steps see at the same place, read-only",
    )
    parser.add_argument(
        "--bound", type=float, default=BOUND_SECONDS, help="seconds to wait for the site"
    )
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do it, or print it; the exit status.

    Raises ValueError for a Dockerfile that is not understood and for a root that is none.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parse(arguments)
    text = (CONTEXT / "Dockerfile").read_text(encoding="utf-8")
    image = dockerfile.read(text, dict(options.arg))
    if options.print:
        print(plan(image))
        return 0
    if options.root is None or os.geteuid() != 0:
        raise ValueError("A clean root is needed (--root FOLDER), and to be root on this machine.")
    root = Root(options.root, options.show)
    if not options.alone:
        again = [sys.executable, "-m", "deploy.image_steps", "--alone", *arguments]
        return subprocess.run([*_ALONE, *again], check=False).returncode
    try:
        run(image, root, options)
    except RuntimeError as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
