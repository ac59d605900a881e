"""Run the Python snippets that pages offer."""

from typing import Any

import pytest
import torch

import pretrained
from tests.helpers.bundled_models import DECODER, ENCODER, bundled_model


def run_snippet(code: str, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    """Run a snippet; return its variables and its output.

    It uses the bundled models that the tests have already loaded. On a machine with a GPU it loads
    its own, because it requests the CPU.
    """
    code.encode("ascii")  # no bidi characters that could reorder the text
    names: dict[str, Any] = {}
    load = pretrained.load

    def loads(name: str, **options: Any) -> pretrained.Pretrained:
        assert "device" in options  # without it, a GPU would print different last digits
        shared = name in (DECODER, ENCODER) and not torch.cuda.is_available()
        return ready[name] if shared else load(name, **options)

    ready = {name: bundled_model(name) for name in (DECODER, ENCODER) if repr(name) in code}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pretrained, "load", loads)
        exec(compile(code, "snippet", "exec"), names)
    return names, capsys.readouterr().out
