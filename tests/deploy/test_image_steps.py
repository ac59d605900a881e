"""The Dockerfile is read as Docker reads it, as far as that can be seen without a container."""

from pathlib import Path

import pytest
import yaml

from deploy import dockerfile, image_steps

ROOT = Path(__file__).resolve().parents[2]


def steps(text: str, **arguments: str) -> list[dockerfile.Step]:
    return dockerfile.read(f"FROM base\n{text}", arguments).steps


def test_a_line_that_ends_in_a_backslash_goes_on_after_comments_and_empty_lines():
    text = "RUN one \\\n    # a comment\n\n    && two\nCMD three"
    first, second = dockerfile.instructions(text)
    assert (first.line, first.word, first.value.split()) == (1, "RUN", ["one", "&&", "two"])
    assert second == dockerfile.Instruction(5, "CMD", "three")


def test_a_file_that_ends_in_a_backslash_is_refused():
    with pytest.raises(ValueError, match="Line 1: the file ends"):
        dockerfile.instructions("RUN one \\\n")


def test_an_argument_has_its_default_until_another_value_is_given():
    text = 'ARG KIND=cpu\nARG MORE=""\nRUN echo "$KIND"'
    assert steps(text)[0].environment["KIND"] == "cpu"
    assert steps(text, KIND="cuda")[0].environment["KIND"] == "cuda"
    assert steps(text)[0].environment["MORE"] == ""
    assert steps(text)[0].command == ("/bin/sh", "-c", 'echo "$KIND"')


def test_an_argument_is_seen_after_its_line_only_and_never_by_the_command():
    image = dockerfile.read("FROM base\nRUN one\nARG KIND=cpu\nRUN two\nCMD three")
    assert ["KIND" in step.environment for step in image.steps] == [False, True]
    assert "KIND" not in image.environment


def test_a_variable_of_the_image_wins_over_an_argument_of_the_same_name():
    assert steps("ENV A=1\nARG A=2\nRUN echo")[0].environment["A"] == "1"


def test_user_folder_and_environment_are_those_in_force_at_the_step():
    text = "ENV A=1 B='two words'\nWORKDIR /app\nRUN one\nUSER 1000\nENV A=2\nWORKDIR sub\nRUN two"
    first, second = (step for step in steps(text) if step.word == "RUN")
    assert (first.user, first.folder, first.environment["A"]) == ("root", "/app", "1")
    assert (second.user, second.folder, second.environment["A"]) == ("1000", "/app/sub", "2")
    assert second.environment["B"] == "two words"


def test_names_of_variables_are_replaced_in_folders_and_copies():
    text = "ENV HOME=/home/lab\nARG NAME=x\nWORKDIR $HOME/${NAME}\nCOPY $NAME ./"
    folder, copy = steps(text)
    assert folder.target == "/home/lab/x"
    assert (copy.sources, copy.target) == (("x",), "/home/lab/x/")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("ADD a b", "ADD is none of"),
        ("VOLUME /data", "VOLUME is none of"),
        ("RUN --mount=type=cache one", "RUN with options"),
        ("RUN <<EOF", "RUN with options or with text that follows"),
        ("COPY --chown=1000 a b", "COPY with options"),
        ("COPY a", "needs names without wildcards"),
        ("COPY *.txt ./", "needs names without wildcards"),
        ("COPY ../a ./", "outside of the folder"),
        ("COPY a b c", "does not end in '/'"),
        ("ENV A 1", "'A' is not of the form NAME=VALUE"),
        ("ENV A=${B:-1}", "neither \\$NAME nor"),
        ("EXPOSE 80/udp", "is not one port"),
        ("HEALTHCHECK NONE", "no option of HEALTHCHECK"),
        ("HEALTHCHECK --timeout=soon CMD one", "no time such as 30s"),
        ('CMD ["one", 2]', "begins like a JSON list"),
        ("FROM other", "only one stage"),
        ("RUN", "RUN says nothing"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(text, what):
    with pytest.raises(ValueError, match=f"Line 3: .*{what}"):
        dockerfile.read(f"FROM base\n\n{text}")


def test_a_file_without_a_base_and_an_argument_without_an_arg_are_refused():
    with pytest.raises(ValueError, match="Line 1: RUN stands before FROM"):
        dockerfile.read("RUN one")
    with pytest.raises(ValueError, match="has no ARG OTHER"):
        dockerfile.read("FROM base", {"OTHER": "1"})


def test_patterns_leave_out_what_they_name_and_everything_in_it():
    ignored = dockerfile.Ignored("# a comment\n.git\n**/__pycache__\n**/*.pyc\n/tests/\nb?.t*\n")
    out = [".git", ".git/x/y", "__pycache__/a", "a/b/__pycache__/c", "a.pyc", "a/b.pyc", "tests/a"]
    kept = [".gitignore", "a/.git", "a/tests", "pycache", "a.py", "bb/c.txt", "b.txt"]
    assert [path for path in (*out, "bb.txt") if not ignored(path)] == []
    assert [path for path in kept if ignored(path)] == []


@pytest.mark.parametrize("pattern", ["!kept", "[ab]", "a\\b"])
def test_a_pattern_that_is_not_understood_is_refused(pattern):
    with pytest.raises(ValueError, match="has a sign that is not understood"):
        dockerfile.Ignored(pattern)


def test_a_copy_takes_files_and_links_that_are_not_ignored(tmp_path):
    for name in ("a/one.py", "a/two.pyc", "a/out/three.py", "four.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "a" / "link").symlink_to("out")
    ignored = dockerfile.Ignored("**/*.pyc\na/out")
    assert list(dockerfile.files(tmp_path, "a", ignored)) == ["a/link", "a/one.py"]
    assert list(dockerfile.files(tmp_path, "four.txt", ignored)) == ["four.txt"]
    assert list(dockerfile.files(tmp_path, ".", ignored)) == ["a/link", "a/one.py", "four.txt"]
    for name in ("a/out", "a/two.pyc", "five.txt"):
        with pytest.raises(ValueError, match="no such file, or it is ignored"):
            list(dockerfile.files(tmp_path, name, ignored))


def test_the_projects_own_dockerfile_is_read_whole():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    image = dockerfile.read(text, {"TORCH": "cuda"})
    assert image.base == "python:3.11-slim"
    assert (image.user, image.folder, image.port) == ("1000", "/app", 8501)
    assert image.environment["HOME"] == "/home/lab"
    assert image.command[:3] == ("python", "-m", "deploy.sites")
    assert (image.health[:2], image.health_seconds) == (("python", "-c"), 5.0)
    assert image.steps[-1].sources == (".",)
    assert {step.word for step in image.steps} == {"RUN", "COPY", "WORKDIR"}
    assert {step.environment.get("TORCH", "cuda") for step in image.steps} == {"cuda"}
    done = len([line for line in text.splitlines() if line.startswith(("RUN", "COPY", "WORKDIR"))])
    assert len(image.steps) == done


def test_every_copy_of_the_dockerfile_finds_files_and_none_of_the_tests():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    ignored = dockerfile.Ignored((ROOT / ".dockerignore").read_text(encoding="utf-8"))
    copied = [
        set(dockerfile.files(ROOT, source, ignored))
        for step in dockerfile.read(text).steps
        for source in step.sources
    ]
    assert all(copied)
    assert {
        "app.py",
        "deploy/sites.py",
        ".streamlit/config.toml",
        "attention_core/attend.py",
    } <= copied[-1]
    parts = {part for name in copied[-1] for part in Path(name).parts}
    assert parts & {"tests", ".git", ".venv", "__pycache__", "Dockerfile"} == set()


def test_what_git_leaves_out_stays_out_of_the_image_too():
    ignored = dockerfile.Ignored((ROOT / ".dockerignore").read_text(encoding="utf-8"))
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    names = [line.strip("/").replace("*", "name") for line in lines]
    assert ".venv-scale" in names
    assert [name for name in names if not ignored(name)] == []


def test_what_may_be_written_is_what_compose_names():
    site = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]["site"]
    assert list(image_steps.IN_MEMORY) == site["tmpfs"]
    assert [volume.split(":")[1] for volume in site["volumes"]] == list(image_steps.VOLUMES)
    assert site["read_only"]


def test_printing_does_nothing_and_needs_no_root(capsys):
    assert image_steps.main(["--print", "--arg", "MODELS=gpt2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "from python:3.11-slim"
    assert lines[-1].startswith("command as 1000 in /app: python -m deploy.sites")


def test_a_root_that_is_no_clean_one_is_refused(tmp_path):
    for folder in (Path("/"), tmp_path):
        with pytest.raises(ValueError, match="is no clean root"):
            image_steps.Root(folder)


def test_a_user_is_found_by_name_or_number(tmp_path):
    for name in ("bin/sh", "etc/passwd"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    (tmp_path / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nlab:x:1000:100::/h:/bin/sh\n")
    root = image_steps.Root(tmp_path)
    assert [root.account(user) for user in ("root", "lab", "1000", "77")] == [
        (0, 0), (1000, 100), (1000, 100), (77, 0),
    ]  # fmt: skip
    with pytest.raises(ValueError, match="no user 'nobody'"):
        root.account("nobody")
