"""Searching a domain while the model, the chunker or another process interferes."""

import threading
from dataclasses import dataclass, field

import numpy as np
import pytest

from docindex_dagster.core.errors import EmbeddingError
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.memory.fold import fold
from docindex_dagster.memory.memory import Memory
from docindex_dagster.memory.message_index import Searcher, embed_query_or_warn
from tests.memory.logs import DOMAIN
from tests.memory.talks import log_of, overlay_of, project, say


@dataclass
class Model:
    """A static model that fails, blocks or returns fewer values on demand."""

    name: str = "model/a/256"
    dimension: int = 256
    max_tokens: int = 1 << 20
    error: Exception | None = None
    entered: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event | None = None
    real: StaticEmbedder = field(default_factory=StaticEmbedder)

    def embed_documents(self, texts):
        if self.error:
            raise self.error
        found = self.real.embed_documents(texts)[:, : self.dimension]
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    def embed_query(self, text):
        self.entered.set()
        if self.go_on:
            assert self.go_on.wait(30)
        return self.embed_documents([text])[0]


@pytest.fixture
def talk(tmp_path):
    settings = project(tmp_path / "project")
    say(log_of(settings), "the pump is blue", 1)
    return settings


@pytest.fixture
def model():
    return Model()


@pytest.fixture
def searcher(talk, model):
    return Searcher(overlay_of(talk), lambda: model)


def search(searcher, model, query="pump"):
    warnings: list[str] = []
    found, notes = searcher.search(embed_query_or_warn(query, model, warnings), top_k=10)
    return [(piece.text, {signal.name: signal.contribution for signal in each.signals}) for each, piece, _ in found], [
        *warnings,
        *notes,
    ]


def test_after_a_change_of_the_model_all_is_embedded_by_the_new_one(searcher, model):
    search(searcher, model)
    model.name, model.dimension = "model/b/64", 64

    [(text, signals)], _ = search(searcher, model)

    assert text == "the pump is blue"
    assert signals["vector"] > 0


def test_a_query_that_another_model_embedded_is_one_of_words(searcher, model):
    asked = embed_query_or_warn("pump", Model(name="model/other/256"), [])

    [(each, _, _)], _ = searcher.search(asked, top_k=10)

    assert [signal.name for signal in each.signals] == ["bm25"]


def test_after_a_failure_of_the_model_messages_are_found_by_words_and_then_by_vectors_again(searcher, model):
    model.error = EmbeddingError("it is away")
    [(_, without)], warnings = search(searcher, model)
    model.error = None

    [(_, again)], later = search(searcher, model)

    assert "vector" not in without
    assert any("are found only by keywords" in warning for warning in warnings)
    assert again["vector"] > 0
    assert later == []


def test_after_any_error_nothing_is_missing(searcher, model, talk):
    model.error = RuntimeError("a bug")
    with pytest.raises(RuntimeError):
        searcher.search(embed_query_or_warn("pump", Model(), []), top_k=10)
    model.error = None
    say(log_of(talk), "the pump is green", 2)

    found, _ = search(searcher, model)

    assert {text for text, _ in found} == {"the pump is blue", "the pump is green"}


def test_no_write_waits_for_a_query_that_is_embedded(talk, monkeypatch):
    model = Model(go_on=threading.Event())
    memory = Memory(talk, DOMAIN)
    monkeypatch.setattr(memory, "_embedder", lambda: model)
    recalling = threading.Thread(target=memory.recall, args=("pump",))
    recalling.start()
    assert model.entered.wait(30)

    written = memory.ingest("the pump is green", session="s")

    assert recalling.is_alive()
    assert written.chunks == 1
    model.go_on.set()
    recalling.join(30)


def test_the_query_is_embedded_once_for_all_domains(talk, monkeypatch):
    model = Model()
    asked: list[str] = []
    embed = model.embed_query

    def note(text):
        asked.append(text)
        return embed(text)

    monkeypatch.setattr(model, "embed_query", note)
    memory = Memory(talk, DOMAIN, ["project/a", "project/b"])
    monkeypatch.setattr(memory, "_embedder", lambda: model)

    memory.recall("pump")

    assert asked == ["pump"]


def test_what_another_process_erases_while_the_log_is_read_is_not_seen(talk, monkeypatch):
    overlay = overlay_of(talk)
    fold(talk, DOMAIN)
    overlay.refresh()
    read = overlay._log.read

    def erase_first(*arguments):
        monkeypatch.setattr(overlay._log, "read", read)
        log_of(talk).forget("session", "s")
        say(log_of(talk), "an eagle circles", 2, "other")
        fold(talk, DOMAIN)
        return read(*arguments)

    monkeypatch.setattr(overlay._log, "read", erase_first)

    overlay.refresh()

    assert [each.message.text for each in overlay.messages] == ["an eagle circles"]


def test_after_an_error_while_vectors_are_made_again_nothing_is_missing(searcher, model):
    model.error = EmbeddingError("it is away")
    search(searcher, model)
    model.error = RuntimeError("a bug")
    with pytest.raises(RuntimeError):
        searcher.search(embed_query_or_warn("pump", Model(), []), top_k=10)
    model.error = None

    [(text, signals)], warnings = search(searcher, model)

    assert text == "the pump is blue"
    assert signals["vector"] > 0
    assert warnings == []
