"""Run the Python that a page gives away."""

from typing import Any

import pytest
import torch

import pretrained
from tests.helpers.bundled_models import DECODER, ENCODER, bundled_model


def run_snippet(code: str, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    """What a snippet leaves behind and prints.

    It gets the bundled models as the tests have loaded them; on a machine with a GPU its own, as it
    asks for the CPU.
    """
    code.encode("ascii")  # nothing that could turn the reading around
    names: dict[str, Any] = {}
    load = pretrained.load

    def loads(name: str, **options: Any) -> pretrained.Pretrained:
        assert "device" in options  # or a machine with a GPU would print other last digits
        shared = name in (DECODER, ENCODER) and not torch.cuda.is_available()
        return ready[name] if shared else load(name, **options)

    ready = {name: bundled_model(name) for name in (DECODER, ENCODER) if repr(name) in code}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pretrained, "load", loads)
        exec(compile(code, "snippet", "exec"), names)
    return names, capsys.readouterr().out
