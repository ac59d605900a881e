"""Every environment variable accepts valid values and rejects all others."""

import os
import re
from pathlib import Path

import pytest

from pretrained import settings

GB = 1_000_000_000

ALLOWED = {
    "ATTENTION_LAB_DOWNLOADS": {
        **dict.fromkeys(("on", "ON", "1", "True", "yes", " on "), True),
        **dict.fromkeys(("off", "OFF", "0", "FALSE", "no"), False),
        "": True,
        " ": True,
    },
    "ATTENTION_LAB_WARMUP": {"off": False, "OFF": False, "1": True, "": True},
    "ATTENTION_LAB_LOG": {"": False, "json": True, "JSON": True},
    "ATTENTION_LAB_HOSTS": {
        "": (),
        " Lab.example.org, *.school.example ": ("lab.example.org", "*.school.example"),
        "[::1]": ("[::1]",),
    },
    "ATTENTION_LAB_EMBED": {
        "https://moodle.example.org http://x.example:8080": (
            "https://moodle.example.org",
            "http://x.example:8080",
        ),
    },
    "ATTENTION_LAB_MEMORY_GB": {"": None, "2.7": 2_700_000_000, "1e1": 10 * GB, ".5": GB // 2},
    "ATTENTION_LAB_MAX_DOWNLOAD_GB": {"": 8 * GB, "0.25": GB // 4},
    "ATTENTION_LAB_SITES": {"": None, "1": 1, "64": 64},
    "ATTENTION_LAB_REPLICAS": {"": (1, 1), "2": (2, 2), "1-4": (1, 4)},
    "ATTENTION_LAB_REPLICA_GPUS": {"": 0.0, "0": 0.0, "0.25": 0.25, "2": 2.0},
    "ATTENTION_LAB_SERVE_URL": {
        "": "",
        "http://models:8600/": "http://models:8600",
        "HTTPS://ray_head.example/base": "HTTPS://ray_head.example/base",
        "http://[::1]:8600": "http://[::1]:8600",
    },
    "HF_ENDPOINT": {"": "https://huggingface.co", "http://hub:80/": "http://hub:80"},
    "ATTENTION_LAB_PREFETCH": {"gpt2, org/name,": ("gpt2", "org/name")},
    "ATTENTION_LAB_DEFAULT_MODELS": {"": (), "mine,gpt2": ("mine", "gpt2")},
    "ATTENTION_LAB_METRICS_TOKEN": {"": "", "s3cret-é\n": "s3cret-é"},
    "ATTENTION_LAB_MODELS": {"": None, "/": Path("/"), "~": Path.home()},
    "ATTENTION_LAB_CACHE": {"": None, "/not/yet/there": Path("/not/yet/there")},
    "HF_HUB_CACHE": {"": None, "~/not-yet-there": Path.home() / "not-yet-there"},
}

SWITCHES = ("disabled", "none", "2", "on,off")
NUMBERS = ("many", "-5", "0", "nan", "1e400", "1_0", "２", "1,5")
URLS = (
    "nonsense", "file:///etc/passwd", "http://[::1", "http://", "http://models:99999",
    "http://mod els", "http://models/?a=b", "javascript:alert(1)", "http://models\x1b[2J",
)  # fmt: skip
MODEL_NAMES = (",", "../../etc/passwd", "a b", "x" * 200)
REFUSED = {
    "ATTENTION_LAB_DOWNLOADS": SWITCHES,
    "ATTENTION_LAB_WARMUP": SWITCHES,
    "ATTENTION_LAB_LOG": ("xml", "on", "1", "json lines"),
    "ATTENTION_LAB_HOSTS": (",", "*", "https://lab.example.org", "a.example:8501", "a_b", "é"),
    "ATTENTION_LAB_EMBED": (
        ",", "*", "moodle.example.org", "https://a.example;script-src", "https://a.example/path",
        "https://a.example:0", "https://a.example:65536", "'self'", "none",
    ),
    "ATTENTION_LAB_MEMORY_GB": NUMBERS,
    "ATTENTION_LAB_MAX_DOWNLOAD_GB": NUMBERS,
    "ATTENTION_LAB_SITES": ("0", "65", "-2", "1.5", "two", "٢", "9" * 5_000),
    "ATTENTION_LAB_REPLICAS": ("0", "4-2", "many", "1-2-3", "-1", "1-", "9" * 5_000),
    "ATTENTION_LAB_REPLICA_GPUS": ("half", "-1", "nan", "inf", "1.5", "1_0"),
    "ATTENTION_LAB_SERVE_URL": URLS,
    "HF_ENDPOINT": URLS,
    "ATTENTION_LAB_PREFETCH": MODEL_NAMES,
    "ATTENTION_LAB_DEFAULT_MODELS": MODEL_NAMES,
    "ATTENTION_LAB_METRICS_TOKEN": ("a\nb", "a\x1bb", os.fsdecode(b"\xff\xfe")),
    "ATTENTION_LAB_MODELS": ("/dev/null", "/not/there", "~nobody99/x", "x" * 5_000),
    "ATTENTION_LAB_CACHE": ("/dev/null", "/dev/null/below", "~nobody99/x"),
    "HF_HUB_CACHE": ("/dev/null", "/dev/null/below", "~nobody99/x"),
}  # fmt: skip

BY_NAME = {setting.name: setting for setting in settings.ALL}


@pytest.fixture(autouse=True)
def _unset_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in BY_NAME:
        monkeypatch.delenv(name, raising=False)


def cases(table: dict) -> list[tuple[str, str]]:
    return [(name, text) for name, texts in table.items() for text in texts]


@pytest.mark.parametrize(("name", "text"), cases(ALLOWED), ids=lambda text: ascii(text)[:40])
def test_reads_valid_values(name: str, text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(name, text)
    settings.check()
    assert BY_NAME[name].read() == ALLOWED[name][text]


@pytest.mark.parametrize(("name", "text"), cases(REFUSED), ids=lambda text: ascii(text)[:40])
def test_invalid_values_exit_with_a_one_line_error(
    name: str, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv(name, text)
    with pytest.raises(SystemExit) as ended:
        settings.check_or_exit()
    assert ended.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(name)
    assert line.isprintable()
    assert len(line) < 400
    is_secret = name == settings.METRICS_TOKEN.name
    assert (ascii(text.strip()[:40])[1:-1] in line) != is_secret


def test_every_variable_has_valid_and_invalid_cases():
    assert set(ALLOWED) == set(REFUSED) == set(BY_NAME)


def test_site_only_reads_checked_variables(root: Path):
    files = [root / "app.py", *(f for d in ("serving", "web", "pretrained", "ui", "pages", "deploy")
                                for f in root.glob(f"{d}/**/*.py"))]  # fmt: skip
    code = "\n".join(file.read_text(encoding="utf-8") for file in files)
    assert set(re.findall(r"ATTENTION_LAB_[A-Z_]+\b", code)) <= set(BY_NAME)
    reads = [f for f in files if re.search(r"environ[^}\n]*ATTENTION_LAB", f.read_text("utf-8"))]
    assert reads == []
