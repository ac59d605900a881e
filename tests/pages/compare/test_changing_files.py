"""The Heads page while the files of the model on display change."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from serving import models, runs
from tests.helpers import changing_files as files
from tests.helpers.apptest import messages, open_page

HEADS = "pages/compare/heads/page.py"
Change = Callable[[Path, bytes], None]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> files.Folders:
    return files.Folders(tmp_path_factory.mktemp("folders"))


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("model.safetensors", files.truncate),
        ("model.safetensors", files.rewrite),
        ("config.json", files.replace_by_fifo),
    ],
)
def test_model_files_change_between_reruns(
    file: str,
    change: Change,
    folders: files.Folders,
    site: AppTest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path))
    folder = folders.copy("bert", file, tmp_path / "mine")
    open_page(site, HEADS, heads_model="mine", heads_text=files.TEXT)
    assert not site.exception
    change(folder / file, folders.other("bert", file))
    runs.run_forward.clear()
    site.run()
    assert not site.exception
    if files.is_usable_after(change, file):
        run = runs.run("mine", files.TEXT)
        assert site.session_state["heads_model"] == "mine"
        with torch.inference_mode():
            core = models.get("mine").core
            record = core(torch.tensor([run.tokens.ids]), record=True).records[1]
        torch.testing.assert_close(run.tensors.weights[1], record.weights[0])
        torch.testing.assert_close(
            files.numbers(models.get("mine")), files.expected_numbers(folder), atol=1e-5, rtol=0
        )
    else:  # The page shows another model or explains what is wrong.
        assert site.session_state["heads_model"] != "mine" or messages(site)
