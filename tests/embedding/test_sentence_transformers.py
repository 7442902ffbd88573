"""The provider `sentence-transformers`: names without the library and, with it, models created here."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from docindex_dagster.core.errors import EmbeddingError, SettingsError
from docindex_dagster.core.settings import EmbeddingSettings, check_settings
from docindex_dagster.embedding.protocol import Embedder
from docindex_dagster.embedding.providers import embedder_named, load_embedder
from tests import loopback
from tests.embedding.model_folders import POOLING, write_model

IS_INSTALLED = find_spec("sentence_transformers") is not None
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "pump", "valve", "tank", "opens", "fills", "the", "find", ":")
TEXTS = ["the pump fills", "the valve opens the tank", "", "tank " * 500]


def embedder(model: Path | str, **others: object) -> Embedder:
    settings = {"provider": "sentence-transformers", "model": str(model), **others}
    return load_embedder(EmbeddingSettings.model_validate(settings))


# Names, which load nothing.


def test_a_folder_gives_its_name_fingerprint_and_dimension_without_the_library(tmp_path):
    folder = write_model(tmp_path / "my model")
    code = (
        "import sys\n"
        "from docindex_dagster.embedding.sentence_transformers import SentenceTransformersEmbedder\n"
        "embedder = SentenceTransformersEmbedder(sys.argv[1])\n"
        "print(embedder.name, embedder.dimension, {'torch', 'transformers', 'huggingface_hub'} & set(sys.modules))"
    )
    output = subprocess.run([sys.executable, "-c", code, folder], check=True, capture_output=True, text=True).stdout

    name, dimension, loaded = output.split(maxsplit=2)
    provider, label, last = name.split("/")
    assert (provider, label.partition("@")[0], last, dimension) == ("sentence-transformers", "my-model", "24", "24")
    assert loaded.strip() == "set()"


def test_other_weights_under_the_same_name_are_another_model(tmp_path):
    first = embedder(write_model(tmp_path / "model")).name
    again = embedder(tmp_path / "model").name
    (tmp_path / "model" / "model.safetensors").write_bytes(b"WEIGHTS")

    assert first == again
    assert embedder(tmp_path / "model").name != first


def test_vectors_may_be_cut_and_not_made_longer(tmp_path):
    folder = write_model(tmp_path)

    assert embedder(folder, dimensions=16).name.endswith("/16")
    with pytest.raises(EmbeddingError, match="has only 24"):
        _ = embedder(folder, dimensions=32).name


def test_a_model_whose_files_do_not_tell_its_dimension_needs_it_from_the_settings(tmp_path):
    folder = write_model(tmp_path, "StaticEmbedding")

    assert embedder(folder, dimensions=256).dimension == 256
    with pytest.raises(EmbeddingError, match=r"set embedding\.dimensions"):
        _ = embedder(folder).dimension


def test_a_name_that_the_settings_hold_no_more_is_found_only_if_its_model_is_there(tmp_path):
    name = embedder(write_model(tmp_path / "model")).name

    assert embedder_named(name) is None  # a name does not reveal where a folder is
    assert embedder_named("sentence-transformers/org/model@00112233/384") is None
    assert embedder_named("minilm/all-MiniLM-L6-v2/384").name == "minilm/all-MiniLM-L6-v2/384"
    assert embedder_named("minilm/all-MiniLM-L6-v2/128") is None


# Settings.


def test_the_path_of_a_folder_begins_at_the_settings_file(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")

    def model(given: str) -> str | None:
        section = {"provider": "sentence-transformers", "model": given}
        return check_settings(tmp_path, {"embedding": section}).embedding.model

    assert model("./models/mine") == str(tmp_path / "models" / "mine")
    assert model("../mine/") == str(tmp_path.parent / "mine")
    assert model("~/mine") == "/home/ada/mine"
    assert model("/mine") == "/mine"
    assert model("org/model") == "org/model"


def test_a_path_that_can_be_none_is_refused(tmp_path):
    with pytest.raises(SettingsError, match=r"embedding\.model.*NUL"):
        check_settings(tmp_path, {"embedding": {"model": "./a\0b"}})


def test_without_a_model_it_says_what_to_set():
    with pytest.raises(EmbeddingError, match=r"needs embedding\.model: .*BAAI/bge-small-en-v1\.5"):
        load_embedder(EmbeddingSettings(provider="sentence-transformers"))


def test_what_is_no_model_is_reported_with_its_place(tmp_path):
    with pytest.raises(EmbeddingError, match=f"no sentence-transformers model in {tmp_path}"):
        _ = embedder(tmp_path).name


@pytest.mark.skipif(IS_INSTALLED, reason="the extra is installed")
def test_without_the_extra_it_says_what_to_install_when_it_first_embeds(tmp_path):
    of_folder, of_hub = embedder(write_model(tmp_path)), embedder("org/model")

    for ask in (lambda: of_folder.embed_documents(["a"]), lambda: of_folder.embed_query("a"), lambda: of_hub.name):
        with pytest.raises(EmbeddingError, match=r"pip install '\.\[sentence-transformers\]'"):
            ask()


# With the library.


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """Return a small model with random weights and a prompt for queries."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder: Path = tmp_path_factory.mktemp("made")
    torch.manual_seed(0)
    write_model(folder, "Transformer", "Pooling", Pooling={**POOLING, "word_embedding_dimension": 32})
    (folder / "config_sentence_transformers.json").write_text('{"prompts": {"query": "find : ", "document": ""}}')
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = BertConfig(vocab_size=len(WORDS), max_position_embeddings=64, **sizes)
    BertModel(config).save_pretrained(folder)
    BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=64).save_pretrained(folder)
    return folder


@pytest.fixture
def model(made, tmp_path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "model"))


@pytest.mark.extras
def test_vectors_are_those_of_the_library_at_unit_length_whatever_the_batch(model):
    from sentence_transformers import SentenceTransformer

    expected = SentenceTransformer(str(model), device="cpu").encode(TEXTS, normalize_embeddings=True)
    found = embedder(model, device="cpu").embed_documents(TEXTS)

    assert found.dtype == np.float32
    assert np.allclose(found, expected, atol=1e-6)
    assert np.allclose(embedder(model, batch_size=1).embed_documents(TEXTS), expected, atol=1e-5)
    assert embedder(model).embed_documents([]).shape == (0, 32)


@pytest.mark.extras
def test_a_query_is_embedded_under_the_prompt_for_queries(model):
    asked = embedder(model).embed_query("pump")

    assert asked.shape == (32,)
    assert np.allclose(asked, embedder(model).embed_documents(["find : pump"])[0], atol=1e-6)
    assert not np.allclose(asked, embedder(model).embed_documents(["pump"])[0], atol=1e-2)


@pytest.mark.extras
def test_the_name_says_what_the_model_does(model):
    found = embedder(model)

    assert found.dimension == found.embed_query("pump").size == 32
    assert found.max_tokens == 64


@pytest.mark.extras
def test_cut_vectors_have_unit_length_again(model):
    whole, cut = embedder(model).embed_documents(TEXTS), embedder(model, dimensions=8).embed_documents(TEXTS)

    assert cut.shape == (4, 8)
    assert np.allclose(cut, whole[:, :8] / np.linalg.norm(whole[:, :8], axis=1, keepdims=True), atol=1e-6)


def change(model: Path, value: float) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(model / "model.safetensors")
    name = next(name for name in weights if name.endswith("word_embeddings.weight"))
    weights[name] = weights[name].copy()
    weights[name][WORDS.index("pump")] = value
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.extras
def test_weights_that_change_while_a_process_lives_are_loaded_again_under_another_name(model):
    before = embedder(model)
    name, vector = before.name, before.embed_query("pump")
    change(model, 1.0)
    after = embedder(model)

    assert after.name != name
    assert not np.allclose(after.embed_query("pump"), vector, atol=1e-3)
    assert before.name == name  # an embedder keeps its model for its lifetime
    assert np.allclose(before.embed_query("pump"), vector, atol=1e-6)


@pytest.mark.extras
def test_what_is_no_number_is_an_error(model):
    change(model, float("nan"))

    with pytest.raises(EmbeddingError, match=r"NaN or zero vectors for 1 of 2 texts"):
        embedder(model).embed_documents(["the pump", "the valve"])


@pytest.mark.extras
def test_weights_that_are_none_and_devices_that_are_not_there_are_errors(model):
    with pytest.raises(EmbeddingError, match="cannot be loaded"):
        embedder(model, device="nowhere").embed_query("pump")

    (model / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(EmbeddingError, match="cannot be loaded"):
        embedder(model).embed_query("pump")


# The hub.


class Hub(loopback.Handler):
    """Fake just enough of the hub to serve one model, org/model, from a folder."""

    folder: ClassVar[Path]
    asked: ClassVar[list[str]]

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.asked.append(self.path)
        path = self.path.partition("?")[0]
        _, slash, name = path.partition("/org/model/resolve/")
        if path.startswith("/api/models/org/model/"):
            files = [file for file in sorted(self.folder.rglob("*")) if file.is_file()]
            names = [file.relative_to(self.folder).as_posix() for file in files]
            about = [
                {"type": "file", "path": each, "size": file.stat().st_size, "oid": f"{at:040x}"}
                for at, (each, file) in enumerate(zip(names, files, strict=True))
            ]
            info = {"id": "org/model", "sha": "a" * 40, "siblings": [{"rfilename": each} for each in names]}
            self._found(json.dumps(about if "/tree/" in path else info).encode())
        elif slash and (file := self.folder / name.partition("/")[2]).is_file():
            self._found(file.read_bytes())
        else:
            self.send_error(404)

    def _found(self, body: bytes) -> None:
        self.answer(200, body, {"X-Repo-Commit": "a" * 40, "ETag": f'"{abs(hash(body)):x}"'})


ASK = """
import json, sys
from docindex_dagster.embedding.providers import embedder_named, load_embedder
from docindex_dagster.core.errors import EmbeddingError
from docindex_dagster.core.settings import EmbeddingSettings
embedder = load_embedder(EmbeddingSettings(provider="sentence-transformers", model=sys.argv[1]))
try:
    former = embedder_named(embedder.name)
    print(json.dumps([embedder.name, embedder.embed_query("pump").tolist(), former is not None]))
except EmbeddingError as error:
    print(json.dumps(str(error)))
"""


def ask(model: str, url: str, cache: Path) -> Any:
    environment = {**os.environ, "HF_ENDPOINT": url, "HF_HOME": str(cache), "HF_HUB_DISABLE_XET": "1"}
    command = [sys.executable, "-c", ASK, model]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return json.loads(output.splitlines()[-1])


@pytest.mark.extras
def test_a_model_of_the_hub_is_fetched_once_without_what_is_not_loaded_and_is_then_local(model, tmp_path):
    (model / "pytorch_model.bin").write_bytes(b"pickled")
    (model / "modeling.py").write_text("raise SystemExit")
    (model / "onnx").mkdir()
    (model / "onnx" / "config.json").write_text("{}")
    Hub.folder, Hub.asked = model, []
    with loopback.serving(Hub) as url:
        first = ask("org/model", url, tmp_path / "cache")
        wanted = " ".join(Hub.asked)
        Hub.asked.clear()
        second = ask("org/model", url, tmp_path / "cache")
        missing = ask("org/other", url, tmp_path / "cache")

    name, vector, is_found_by_name = first
    assert name == embedder(model).name.replace("/model@", "/org/model@")
    assert np.allclose(vector, embedder(model).embed_query("pump"), atol=1e-6)
    assert is_found_by_name
    assert "/model.safetensors" in wanted
    assert not any(name in wanted for name in ("pytorch_model.bin", "modeling.py", "onnx/"))
    assert second == first
    assert not any("/org/model/" in path for path in Hub.asked)
    assert "cannot download the model org/other from the hub" in missing
