"""Questions to a real index, and which results count as answers."""

from dataclasses import replace

import pytest

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.settings import EmbeddingSettings, RerankSettings
from docindex_dagster.evaluation.configuration import Configuration
from docindex_dagster.evaluation.questions import Question, Target, ranks
from docindex_dagster.evaluation.report import compare, report
from docindex_dagster.evaluation.retrieval_runs import ask
from docindex_dagster.evaluation.run import QuestionSelection, evaluate, find_questions
from docindex_dagster.search.model import Mode
from tests.models import TinyEmbedder, offer

STATION, MANUAL = "git/station", "library/manual"


@pytest.fixture
def configuration(project) -> Configuration:
    return Configuration(project)


@pytest.fixture
def asked(project, reader, warn):
    return find_questions(project, reader, QuestionSelection(), warn)


def question(text: str, *targets: Target, **options) -> Question:
    return Question("q:1", text, targets, "python", **options)


def test_history_asks_for_the_files_of_each_commit(asked):
    assert {each.text: [str(target) for target in each.targets] for each in asked.questions} == {
        "Fill the pump with water before it starts": ["src/pump.py"],
        "Stop the flow when the tank is full": ["src/valve.py"],
        "Ask the sensor how warm the roof is": ["src/sensor.py"],
        "Howl until an engineer hears": ["docs/alarm.md"],
    }
    assert asked.origins[0].startswith("git/station: 4 of 4 questions from the newest 5 commits")


def test_neither_the_commit_nor_a_change_log_answers_the_question_that_it_is(configuration, reader, asked):
    answers = ask(configuration, reader, asked.questions)

    found = {place.path for answer in answers for place in answer.places}
    assert found
    assert not [path for path in found if path.startswith(".git/") or path == "CHANGELOG.md"]
    assert all(answer.scores.hit_1 for answer in answers)


def test_a_question_of_a_user_may_be_answered_by_a_change_log(configuration, reader):
    (answer,) = ask(configuration, reader, [question("howl until an engineer hears", Target(STATION, "CHANGELOG.md"))])

    assert answer.scores.hit_1


def test_lines_are_met_by_what_overlaps_them(configuration, reader):
    text = "fill the pump with water from the well"
    near = question(text, Target(STATION, "src/pump.py", (2, 9)))
    far = question(text, Target(STATION, "src/pump.py", (30, 40)))

    assert [answer.ranks for answer in ask(configuration, reader, [near, far])] == [(1,), (None,)]


def test_a_file_of_another_source_is_no_answer(configuration, reader):
    elsewhere = question("fill the pump with water from the well", Target(MANUAL, "src/pump.py"))

    (answer,) = ask(configuration, reader, [elsewhere])

    assert answer.ranks == (None,)


def test_only_the_sources_that_are_named_are_searched(configuration, reader):
    (answer,) = ask(configuration, reader, [question("pump", Target(MANUAL, "guide.md"), within=(MANUAL,))])

    assert {place.source for place in answer.places} == {MANUAL}


def test_a_target_has_the_rank_of_the_first_hit_that_meets_it(configuration, reader):
    (answer,) = ask(
        configuration, reader, [question("pump", Target(MANUAL, "guide.md"), Target(STATION, "src/pump.py"))]
    )

    assert [answer.places[rank - 1].path for rank in answer.ranks] == ["guide.md", "src/pump.py"]
    assert ranks(answer.question, answer.places[:1]).count(None) == 1


def test_the_same_is_found_twice(configuration, reader, asked):
    assert ask(configuration, reader, asked.questions) == ask(configuration, reader, asked.questions)


def test_a_configuration_that_names_another_model_than_the_index_has_is_refused(project, reader, asked, monkeypatch):
    offer(monkeypatch, TinyEmbedder())
    settings = project.model_copy(update={"embedding": EmbeddingSettings(batch_size=3)})

    with pytest.raises(QueryError, match="in another DOCINDEX_HOME, and set `home` to it"):
        ask(Configuration(settings, names_model=True), reader, asked.questions)
    assert ask(Configuration(settings, Mode.BM25, names_model=True), reader, asked.questions)


def test_a_reranker_that_fails_is_reported_once_with_the_number_of_questions(project, reader, asked, warn, warnings):
    remote = RerankSettings(provider="remote", url="http://127.0.0.1:9/rerank", timeout_s=0.5)

    ask(Configuration(project.model_copy(update={"rerank": remote})), reader, asked.questions[:2], warn=warn)

    assert len(warnings) == 1
    assert warnings[0].startswith("2 of 2 questions: the results are not reranked: ")


def test_a_report_has_all_questions_then_each_source_and_language_and_the_worst_first(configuration, reader, asked):
    lost = question("fill the pump with water", Target(MANUAL, "nowhere.md"))

    found = report(ask(configuration, reader, [*asked.questions, lost]), worst=2)

    assert (found.total.questions, found.total.metrics[0].mean) == (5, 0.8)
    assert [(one.name, one.questions) for one in found.by_source] == [(STATION, 4), (MANUAL, 1)]
    assert [(one.name, one.questions) for one in found.by_language] == [("python", 4), ("markdown", 1)]
    assert found.worst[0].question == lost
    assert len(found.worst) == 2
    assert found.as_dict()["worst"][0]["wanted"] == [{"path": "nowhere.md", "rank": None}]


def test_two_configurations_are_compared_question_by_question(configuration, reader, asked, warn):
    blind = replace(configuration, mode=Mode.BM25, weights=replace(configuration.weights, symbols=0, path_terms=0))

    found = evaluate(configuration, reader, asked, other=blind, warn=warn).comparison

    first, second = (ask(each, reader, asked.questions) for each in (configuration, blind))
    assert found == compare(first, second)
    assert found.difference.questions == len(asked.questions)
    expected = [two.scores.mrr - one.scores.mrr for one, two in zip(first, second, strict=True)]
    assert found.difference.metrics[3].mean == pytest.approx(sum(expected) / len(expected), abs=1e-4)


def test_a_configuration_does_not_differ_from_itself(configuration, reader, asked, warn):
    found = evaluate(configuration, reader, asked, other=configuration, warn=warn).comparison

    assert {*found.difference.metrics} == {(0, 0, 0)}
    assert {*found.as_dict()["verdict"].values()} == {"no difference is shown"}
    assert found.changed == []


def test_answers_to_other_questions_cannot_be_compared(configuration, reader, asked):
    answers = ask(configuration, reader, asked.questions)

    with pytest.raises(ValueError, match="the same questions"):
        compare(answers, answers[1:])
