"""Test the packaging: pinned requirements, no large files, and the wheel."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = sorted(ROOT.glob("requirements*.txt"))
MAX_FILE_BYTES = 3_000_000
MAX_MODEL_BYTES = 25_000_000  # per model trained in this project


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


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
    # one plain version each: no range, local build, URL or file
    loose = [line for line in lines if not re.fullmatch(r"[\w.-]+(\[\w+\])?==\d+(\.\w+)*", line)]
    assert loose == []


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


def test_declared_dependencies_match_the_requirements():
    extras = PROJECT["optional-dependencies"]
    assert sorted(extras) == ["reference", "site"]
    site = [line for line in extras["site"] if line != "attention-lab[reference]"]
    declared = [*PROJECT["dependencies"], *extras["reference"], *site]
    required = [line for line in requirement_lines(ROOT / "requirements.txt") if line[0] != "-"]
    assert sorted(declared) == sorted(required)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel without a network and outside the tree, where it would leave files."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for path in ROOT.iterdir():
        if not path.name.startswith(".") and path.name != "build":
            (source / path.name).symlink_to(path)
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet"]
    command = [sys.executable, "-m", "pip", "wheel", *offline, "--wheel-dir", target, "."]
    subprocess.run(command, cwd=source, check=True, timeout=300)
    return next(target.glob("*.whl"))


def test_wheel_holds_the_two_packages_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    metadata = f"attention_lab-{PROJECT['version']}.dist-info"
    assert {name.split("/")[0] for name in names} == {"attention_core", "pretrained", metadata}
    packages = ("attention_core", "pretrained")
    modules = {
        str(path.relative_to(ROOT)) for name in packages for path in (ROOT / name).rglob("*.py")
    }
    assert {name for name in names if name.endswith(".py")} == modules
    assert {f"{name}/py.typed" for name in packages} <= set(names)
    models = {name.split("/")[2] for name in names if name.startswith("pretrained/checkpoints/")}
    assert models == {"bert-novels", "gpt2-novels"}
    for model in models:
        for file in ("config.json", "model.safetensors", "tokenizer.json", "history.npz"):
            assert f"pretrained/checkpoints/{model}/{file}" in names


def test_installed_library_works_outside_the_checkout(wheel, tmp_path):
    """Use only the wheel's files; dependencies come from this environment."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = (
        "import pretrained\n"
        "model = pretrained.load('gpt2-novels', device='cpu')\n"
        "print(pretrained.__file__, model.core.config.n_layers)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert result.stdout.split() == [str(tmp_path / "pretrained/__init__.py"), "6"], result.stderr


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
