"""Concepts in documents: patterns, language models and custom extractors."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docindex_dagster.core import tables
from docindex_dagster.core.errors import ConceptError, SettingsError
from docindex_dagster.core.settings import GraphSettings, LLMSettings, check_settings
from docindex_dagster.graph.build import Content
from docindex_dagster.graph.concepts.extractor import (
    Concept,
    Extractor,
    Found,
    Passage,
    Relation,
    load_extractor,
    normalize_name,
)
from docindex_dagster.graph.concepts.findings import FINDINGS, find_concepts
from docindex_dagster.graph.concepts.llm import LLMExtractor
from docindex_dagster.graph.concepts.patterns import Patterns
from docindex_dagster.graph.document_text import read_prose
from docindex_dagster.graph.extraction import GraphPlan
from docindex_dagster.graph.open_graph import open_graphs
from docindex_dagster.graph.source_graph import stray_edges
from docindex_dagster.llm.protocol import Completion
from docindex_dagster.stores.doctor import examine
from docindex_dagster.stores.publish import Publication
from docindex_dagster.stores.reader import open_reader
from tests.conftest import publish_rows, vectors_of
from tests.examples import docindex, install
from tests.graph.built import build_graph, update_graph
from tests.graph.samples import KEY, chunks_of, edges


def passage(text: str) -> Passage:
    return Passage((), read_prose(text).paragraphs)


def found_in(text: str) -> Found:
    (found,) = Patterns().extract([passage(text)])
    return found


def names(text: str) -> set[str]:
    return {normalize_name(each.name) for each in found_in(text).concepts}


def relations(text: str) -> set[tuple[str, str, str]]:
    return {
        (normalize_name(each.subject), each.predicate, normalize_name(each.object)) for each in found_in(text).relations
    }


# Patterns


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("A blueprint is a set of operations.", "blueprint"),
        ("Text. Reciprocal Rank Fusion is a way to join lists.", "reciprocal rank fusion"),
        ("- **Hybrid search**: joins vectors and words.", "hybrid search"),
        ("- **Vector store** \u2013 holds all the vectors.", "vector store"),
        ("## Blueprints\n\nA simple blueprint needs a name.", "blueprint"),
        ("| Term | Meaning |\n|---|---|\n| **Dead letters** | jobs that failed |", "dead letter"),
    ],
)
def test_a_term_that_is_explained_is_a_concept(text, name):
    assert names(text) == {name}


@pytest.mark.parametrize(
    ("text", "relation"),
    [
        ("It speaks the Model Context Protocol (MCP).", ("mcp", "similar_to", "model context protocol")),
        ("Flask uses Jinja for templates.", ("flask", "uses", "jinja")),
        ("Flask depends on\nthe Werkzeug library.", ("flask", "requires", "werkzeug")),
        ("Redux Toolkit includes RTK Query.", ("redux toolkit", "contains", "rtk query")),
        ("Werkzeug implements WSGI, as others.", ("werkzeug", "implements", "wsgi")),
        ("Quart extends Flask.", ("quart", "refines", "flask")),
    ],
)
def test_a_sentence_relates_two_names(text, relation):
    assert relations(text) == {relation}


def test_what_combines_two_things_contains_both():
    assert relations("Hybrid search combines vector similarity and keyword matching.") == {
        ("hybrid search", "contains", "vector similarity"),
        ("hybrid search", "contains", "keyword matching"),
    }


@pytest.mark.parametrize(
    "text",
    [
        "This is a test. It uses Jinja. There is a way. What follows is the rest.",
        "## Installation\n\nInstallation is easy.",
        "- **Note**: mind the gap in here.",
        "- **Check the log**: it tells what failed.",
        "- **cli**: take all of the options.",
        "- **Total commits**: 12",
        "`Queue` is a class. `make_queue` uses `Queue`.",
        "```\nA blueprint is a set of operations.\n```",
        "    A blueprint is a set of operations.",
        "It (ABC) is. Something like this (THAT) too.",
    ],
)
def test_what_explains_no_term_has_no_concepts(text):
    assert found_in(text) == Found()


def test_each_finding_has_its_line():
    (concept,) = found_in("First line.\n\nThen. A blueprint is a set.\n").concepts

    assert concept == Concept("A blueprint", 0.8, 2)


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("The  Blueprints", "blueprint"),
        ("Kubernetes", "kubernetes"),
        ("APIs", "api"),
        ("DNS", "dns"),
        ("Libraries", "library"),
        ("Classes", "class"),
        ("caches", "cache"),
        ("Indexes", "index"),
        ("\u201cVector\nstore\u201d", "vector store"),
    ],
)
def test_a_concept_is_one_node_however_it_is_written(name, node):
    assert normalize_name(name) == node


@given(st.text(max_size=80))
def test_a_name_that_is_normal_stays_as_it_is(name):
    once = normalize_name(name)

    assert once == once.strip().lower()


@given(st.text(alphabet="AbcD (),.:*-#|\n\u00e9", max_size=300))
def test_the_patterns_read_any_text(text):
    assert isinstance(found_in(text), Found)


# The graph


def content_of(chunks: pa.Table, **settings: object) -> Content:
    plan = GraphPlan(GraphSettings(**settings))
    assert plan.extractor is not None
    return plan.content(find_concepts(chunks, plan.extractor, None))


DOCUMENT = "# Guide\n\nFlask uses Jinja.\n\n## Blueprints\n\nA blueprint is a set of operations.\n"


def test_sections_mention_concepts_and_concepts_are_shared_by_all_sources():
    chunks = [chunks_of({"a.md": DOCUMENT}, source) for source in (KEY, "library/other")]
    graph = open_graphs(
        {each["source"][0].as_py(): build_graph(each, content_of(each, concepts="patterns")) for each in chunks}
    )

    assert edges(graph, "mentions", "uses") >= {
        ("a.md#Guide", "mentions", "concept:flask"),
        ("concept:flask", "uses", "concept:jinja"),
        ("a.md#Guide > Blueprints", "mentions", "concept:blueprint"),
        ("library/other!a.md#Guide > Blueprints", "mentions", "concept:blueprint"),
    }
    assert graph.types.count("concept") == 3


def test_edges_have_their_chunk_and_line():
    chunks = chunks_of({"a.md": DOCUMENT})
    graph = build_graph(chunks, content_of(chunks, concepts="patterns"))

    assert stray_edges(graph, chunks) == ""
    lines = {row["object"]: (row["line"], row["resolution"]) for row in graph.triples.to_pylist()}
    assert lines["concept:blueprint"] == (7, "patterns")


def test_a_chunk_has_no_more_relations_and_concepts_than_the_settings_allow():
    text = "".join(f"- **Term {word}**: it is explained.\n" for word in ("alpha", "beta", "gamma", "delta"))
    chunks = chunks_of({"a.md": f"{text}\nFlask uses Jinja. Quart extends Flask.\n"})
    graph = build_graph(chunks, content_of(chunks, concepts="patterns", max_triples_per_chunk=2))

    predicates = [row["predicate"] for row in graph.triples.to_pylist() if "concept" in row["object_type"]]
    assert sorted(predicates) == ["mentions", "mentions", "refines", "uses"]


def test_without_code_there_are_files_and_documents():
    chunks = chunks_of({"a.py": "import os\n\n\ndef run():\n    os.abort()\n", "a.md": DOCUMENT})
    graph = build_graph(chunks, content_of(chunks, code=False))

    assert set(graph.triples["predicate"].to_pylist()) == {"has_section", "mentions", "uses"}
    assert set(graph.nodes["type"].to_pylist()) == {"file", "section", "concept"}


# Reuse


@dataclass
class Noting:
    """Finds the first word of each passage, records its inputs, and fails on demand."""

    asked: list[str] = field(default_factory=list)
    fails_at: str = "\0"
    name: str = "noting/1"

    def extract(self, passages: Sequence[Passage]) -> Iterable[Found]:
        for each in passages:
            self.asked.append(each.text)
            if self.fails_at in each.text:
                raise RuntimeError("the model is gone")
            yield Found((Concept(each.text.split()[0], 0.5),))


def test_an_extractor_sees_each_text_once():
    before = chunks_of({"a.md": "Alpha one.\n", "b.md": "Beta two.\n", "c.py": "x = 1\n"})
    after = chunks_of({"a.md": "Alpha one.\n", "b.md": "Gamma three.\n", "c.py": "x = 2\n"})
    first, second = Noting(), Noting()

    known = find_concepts(before, first, None)
    found = find_concepts(after, second, known.table)

    assert sorted(first.asked) == ["Alpha one.", "Beta two."]
    assert second.asked == ["Gamma three."]
    assert found.table.equals(find_concepts(after, Noting(), None).table)


def test_what_was_found_before_a_failure_is_kept():
    chunks = chunks_of({"a.md": "Alpha one.\n", "b.md": "Beta two.\n", "c.md": "Gamma three.\n"})

    found = find_concepts(chunks, Noting(fails_at="Beta"), None)

    assert found.table.num_rows == 1
    assert found.problem == "the concepts are incomplete: noting/1: RuntimeError: the model is gone"
    again = Noting()
    assert find_concepts(chunks, again, found.table).problem == ""
    assert again.asked == ["Beta two.", "Gamma three."]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ([None], "expected a Found from the extractor, got NoneType"),
        ([], "expected a Found from the extractor, got NoneType"),
        ([Found((Concept("a", 2.0),))], "confidence"),
        ([Found((Concept("a", 1.0, -1),))], "line"),
        ([Found((), (Relation("a", "likes", "b", 1.0),))], "unknown relation 'likes': expected one of uses, requires"),
    ],
)
def test_what_is_no_finding_is_refused(answer, problem):
    class Wrong:
        name = "wrong"

        def extract(self, passages: Sequence[Passage]) -> Iterable[Found]:
            found: Iterable[Found] = answer
            return found

    found = find_concepts(chunks_of({"a.md": "Text.\n"}), Wrong(), None)

    assert problem in found.problem
    assert found.table.schema.equals(FINDINGS)


def test_an_error_in_the_place_of_a_finding_costs_that_text_alone():
    class Choosy:
        name = "choosy"

        def extract(self, passages: Sequence[Passage]) -> Iterable[Found | ConceptError]:
            return [ConceptError("I cannot") if "Beta" in each.text else Found() for each in passages]

    chunks = chunks_of({"a.md": "Alpha one.\n", "b.md": "Beta two.\n", "c.md": "Gamma three.\n"})
    found = find_concepts(chunks, Choosy(), None)

    assert found.problem == "the concepts are incomplete: choosy: I cannot"
    assert found.table.num_rows == 2


TEXTS = st.sampled_from([DOCUMENT, "# Guide\n\nFlask uses Jinja.\n", "# Other\n\nA queue is a list.\n", "Text.\n"])
FILES = st.dictionaries(st.sampled_from(["a.md", "b.md", "c.md"]), TEXTS, min_size=1)


@settings(max_examples=50)
@given(before=FILES, after=FILES)
def test_an_updated_graph_equals_one_that_was_extracted_from_nothing(before, after):
    old, new = chunks_of(before), chunks_of(after)
    known = find_concepts(old, Patterns(), None)
    plan = GraphPlan()

    updated = update_graph(
        build_graph(old, plan.content(known)),
        new,
        plan.content(find_concepts(new, Patterns(), known.table)),
    )

    whole = build_graph(new, content_of(new))
    assert updated.nodes.equals(whole.nodes)
    assert updated.triples.equals(whole.triples)


# Publication


def published(layout, files: dict[str, str], plan: GraphPlan | None = None) -> Publication:
    chunks = chunks_of(files)
    tables.write(layout.table("chunks", KEY), chunks)
    vectors = vectors_of(chunks)
    tables.write(layout.table("embeddings", KEY), vectors)
    return publish_rows(layout, KEY, chunks, vectors, plan=plan or GraphPlan())


def plan_of(extractor: Extractor) -> GraphPlan:
    plan = GraphPlan()
    plan.__dict__["extractor"] = extractor
    return plan


def test_a_source_is_published_with_its_concepts(layout):
    published(layout, {"a.md": DOCUMENT})

    assert "concept:blueprint" in open_reader(layout).graph.numbers
    assert list(examine(layout)) == []


def test_a_failing_extractor_costs_the_concepts_that_it_owes_and_nothing_else(layout):
    files = {"a.md": "Alpha one.\n", "b.md": "Beta two.\n", "c.py": "def run():\n    pass\n"}

    publication = published(layout, files, plan_of(Noting(fails_at="Beta")))

    assert publication.graph_problem == "the concepts are incomplete: noting/1: RuntimeError: the model is gone"
    nodes = set(open_reader(layout).graph.numbers)
    assert {f"{KEY}!c.py::run", "concept:alpha"} <= nodes
    assert "concept:beta" not in nodes
    assert list(examine(layout)) == []

    mended = Noting()
    publication = published(layout, {**files, "d.md": "Delta four.\n"}, plan_of(mended))

    assert publication.graph_problem == ""
    assert mended.asked == ["Beta two.", "Delta four."]
    assert {"concept:alpha", "concept:beta", "concept:delta"} <= set(open_reader(layout).graph.numbers)


def test_other_settings_make_another_graph(layout):
    first = published(layout, {"a.md": DOCUMENT})
    second = published(layout, {"a.md": DOCUMENT}, GraphPlan(GraphSettings(concepts="none")))

    assert first.source.version != second.source.version
    assert not any(node.startswith("concept:") for node in open_reader(layout).graph.numbers)
    assert list(examine(layout)) == []


# A language model


@dataclass
class Model:
    answer: str
    asked: list[tuple[str, str]] = field(default_factory=list)
    name: str = "model"

    def complete(self, system: str, text: str, max_tokens: int) -> Completion:
        self.asked.append((system, text))
        return Completion(self.answer, 0, 0)


ANSWER = """[
    {"subject": "Flask", "predicate": "uses", "object": "Jinja"},
    {"subject": "Flask", "predicate": "is", "object": "x"}
]"""


def test_a_language_model_is_asked_for_triples():
    model = Model(f"Here they are:\n```json\n{ANSWER}\n```")

    (found,) = LLMExtractor(model, most=10).extract(
        [Passage(("Guide",), read_prose("Text.\n\nFlask uses Jinja.").paragraphs)]
    )

    assert found.relations == (Relation("Flask", "uses", "Jinja", 0.7, 2),)
    assert {concept.name for concept in found.concepts} == {"Flask", "Jinja"}
    ((system, text),) = model.asked
    assert "at most 10" in system
    assert text == "Section: Guide\n\nText.\n\nFlask uses Jinja."


def test_more_triples_than_were_asked_for_are_cut():
    many = ", ".join(f'{{"subject": "A{n}", "predicate": "uses", "object": "B{n}"}}' for n in range(20))

    (found,) = LLMExtractor(Model(f"[{many}]"), most=3).extract([passage("Text.")])

    assert len(found.relations) == 3


@pytest.mark.parametrize("answer", ["", "I cannot.", "[1, 2]", '[{"subject": "a"}]', "][", "[" * 5000])
def test_what_is_no_list_of_triples_is_an_error(answer):
    (found,) = LLMExtractor(Model(answer), most=10).extract([passage("Text.")])

    assert isinstance(found, ConceptError)
    assert "model returned an unusable answer" in str(found)


def test_of_a_passage_without_prose_no_model_is_asked():
    model = Model("[]")

    assert list(LLMExtractor(model, most=10).extract([passage("```\ncode\n```")])) == [Found()]
    assert model.asked == []


# Extractor selection


def test_the_settings_name_the_extractor():
    assert load_extractor(GraphSettings(concepts="none"), LLMSettings()) is None
    assert isinstance(load_extractor(GraphSettings(), LLMSettings()), Patterns)


def test_an_extractor_that_is_not_there_is_reported_with_those_that_are(tmp_path):
    with pytest.raises(SettingsError, match=r"'spacey' not found.*'patterns', 'spacy', 'llm', 'none'"):
        check_settings(tmp_path, {"graph": {"concepts": "spacey"}})


# The documentation's example, installed and used


BROKEN = """
class Fails:
    name = "fails"

    def extract(self, passages):
        raise KeyError("x")


def fails(settings):
    return Fails()
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where the example is installed, with an extractor that fails and one that is missing."""
    folder = tmp_path_factory.mktemp("docindex-glossary")
    return install(folder, "how-to/write-a-concept-extractor.md", broken=("fails", "nothing"), code=BROKEN)


def nodes_with(extractor: str, folder: Path, site: Path) -> tuple[set[str], str]:
    """Return the graph nodes of a folder and the output of the command line."""
    (folder / "bank").mkdir()
    (folder / "bank" / "a.md").write_text("# Payments\n\nThe ledger holds each posting.\n")
    (folder / "docindex.toml").write_text(
        f'[[source]]\nkind = "library"\npath = "bank"\n\n[graph]\nconcepts = "{extractor}"\n'
    )
    reported = docindex(folder, site, "index")
    assert reported.returncode == 0, reported.stderr
    file = next((folder / ".docindex" / "stores" / "graph").glob("*.nodes.parquet"))
    table = tables.read(file)
    assert table is not None
    return set(table["node"].to_pylist()), reported.stdout + reported.stderr


def test_the_example_of_the_documentation_finds_the_terms_of_a_glossary(tmp_path, site):
    nodes, _ = nodes_with("glossary", tmp_path, site)

    assert {"concept:ledger", "concept:posting"} <= nodes


@pytest.mark.parametrize("extractor", ["fails", "nothing"])
def test_an_extractor_that_fails_stops_no_run_and_is_reported(extractor, tmp_path, site):
    nodes, reported = nodes_with(extractor, tmp_path, site)

    assert "a.md#Payments" in nodes
    assert "the concepts are incomplete" in " ".join(reported.split())
