"""`docindex evaluate`: search quality on the user's own repositories."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.conftest import git_alone
from tests.evaluation.conftest import index_all, write_project

WITHOUT_SIGNALS = """\
mode = "bm25"

[weights]
symbols = 0
headings = 0
path_terms = 0
definition = 0
path = 0
"""


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory) -> Path:
    root: Path = tmp_path_factory.mktemp("evaluated") / "project"
    with pytest.MonkeyPatch.context() as patch:
        write_project(root, git_alone(patch))
        index_all(root)
    return root


@pytest.fixture
def evaluate(run, indexed_once, tmp_path) -> Run:
    """Run `docindex evaluate ARGUMENTS` in the project."""
    shutil.copytree(indexed_once, tmp_path, dirs_exist_ok=True)
    return lambda *arguments: run("evaluate", *arguments)


def test_it_prints_the_metrics_of_the_history_by_source_and_language_with_the_worst_questions(evaluate):
    output = evaluate()

    assert output.code == 0
    assert "git/station: 4 of 4 questions from the newest 5 commits" in output.out
    assert "1.000 (1.000 to 1.000)" in output.out
    assert all(label in output.out for label in ("Hit@1", "Hit@5", "Hit@10", "MRR", "NDCG@10", "by language", "python"))
    assert "expected docs/alarm.md (#1)" in output.out
    assert "4 questions in " in output.err


def test_the_same_is_printed_twice_byte_for_byte(evaluate):
    first, second = evaluate("--json"), evaluate("--json")

    assert first.out == second.out
    assert json.loads(first.out)["total"]["ndcg_10"] == {"mean": 1.0, "low": 1.0, "high": 1.0}
    assert evaluate().out == evaluate().out


def test_a_file_of_questions_takes_the_place_of_history(evaluate, tmp_path):
    (tmp_path / "mine.csv").write_text("question,path\nwhat moves water,manual/guide.md:5\nwhat stops it,valve.py\n")

    found = json.loads(evaluate("mine.csv", "--json").out)

    assert found["questions_from"] == ["2 questions from mine.csv"]
    assert [one["name"] for one in found["by_source"]] == ["git/station", "library/manual"]
    assert {answer["name"] for answer in found["worst"]} == {"mine.csv:2", "mine.csv:3"}


def test_a_worse_configuration_is_compared_on_the_same_questions(evaluate, tmp_path):
    (tmp_path / "worse.toml").write_text(WITHOUT_SIGNALS)

    output = evaluate("--compare", "worse.toml")
    comparison = json.loads(evaluate("--compare", "worse.toml", "--json").out)["comparison"]

    assert "difference" in output.out
    assert "no difference is shown" in output.out
    assert comparison["difference"]["questions"] == 4
    assert set(comparison["verdict"].values()) <= {"worse", "better", "no difference is shown"}


def test_a_second_index_is_another_home(evaluate, tmp_path):
    shutil.copytree(tmp_path / ".docindex", tmp_path / "other")
    (tmp_path / "other.toml").write_text('home = "other"\n')

    found = json.loads(evaluate("--compare", "other.toml", "--json").out)

    assert found["left_out"] == 0
    assert found["comparison"]["total"] == found["total"]


def test_how_many_questions_are_asked_can_be_chosen(evaluate):
    assert json.loads(evaluate("-q", "2", "--json").out)["total"]["questions"] == 2
    assert json.loads(evaluate("-q", "0", "--json").out)["total"]["questions"] == 4
    assert json.loads(evaluate("-n", "1", "--json").out)["total"]["questions"] == 1
    assert json.loads(evaluate("-w", "1", "--json").out)["worst"][1:] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--source", "manual"), "the sources have no git history to make questions from: pass a file of questions"),
        (("bad.csv",), "bad.csv:3: the question is empty"),
        (("nowhere.csv",), "nowhere.csv: No such file or directory"),
        (("--compare", "bad.toml"), "invalid mode 'best': must be one of hybrid, vector, bm25, graph"),
        (("--compare", "nowhere.toml"), "nowhere.toml: No such file or directory"),
        (("--rerank", "oracle"), "'oracle' not found"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(evaluate, tmp_path, arguments, message):
    (tmp_path / "bad.csv").write_text("question,path\nwhat is this,pump.py\n,pump.py\n")
    (tmp_path / "bad.toml").write_text('mode = "best"\n')

    output = evaluate(*arguments)

    assert output.code == 1
    assert message in output.err
    assert "Traceback" not in output.err


def test_without_a_history_the_questions_that_were_noted_are_named(evaluate, tmp_path):
    noted = next(tmp_path.rglob(".docindex")) / "questions.jsonl"
    noted.write_text('{"question": "how does the pump stop", "path": "pump.py"}\n')

    output = evaluate("--source", "manual")

    assert f"pass a file of questions, such as {noted} with the collected ones" in output.err


def test_a_mode_that_ranks_nothing_is_refused(evaluate):
    output = evaluate("--mode", "literal")

    assert output.code == 2
    assert "must be one of hybrid, vector, bm25, graph" in " ".join(output.err.replace("│", " ").split())


def test_a_repository_that_is_gone_is_a_warning_and_the_others_ask_on(evaluate, tmp_path):
    shutil.rmtree(tmp_path / "station")
    (tmp_path / "mine.csv").write_text("question,path\nwhat moves water,guide.md\n")

    assert "station is not a folder" in evaluate().err
    assert evaluate("mine.csv").code == 0


def test_what_a_user_calls_good_is_a_question_from_then_on(evaluate, run, tmp_path):
    first = json.loads(run("search", "what moves water to the tank", "--good", "1", "--json").out)[0]
    noted = run("search", "stop  the flow", "--good", "1")

    file = tmp_path / ".docindex" / "questions.jsonl"
    found = json.loads(evaluate(str(file), "--json").out)

    assert f"saved to {file}" in noted.err
    assert file.stat().st_mode & 0o777 == 0o600
    assert (found["total"]["questions"], found["total"]["hit_1"]["mean"]) == (2, 1.0)
    assert {answer["question"] for answer in found["worst"]} == {"what moves water to the tank", "stop the flow"}
    assert f"{first['path']}:{first['start_line']}-" in json.dumps(found["worst"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--good", "99"), "result 99 not found"),
        (("--good", "1", "--type", "commit"), "a commit cannot answer a question"),
        (("--good", "1", "--mode", "literal"), "only applies to ranked results"),
    ],
)
def test_what_is_no_answer_is_not_noted(evaluate, run, tmp_path, arguments, message):
    output = run("search", "water", *arguments)

    assert output.code
    assert message in " ".join(output.err.replace("│", " ").split())
    assert not (tmp_path / ".docindex" / "questions.jsonl").exists()


def test_what_steers_a_terminal_is_shown_and_not_obeyed(evaluate, tmp_path):
    (tmp_path / "mine.csv").write_text("question,path\nwhat \x1b[31mmoves water,guide.md\n")

    assert "\x1b" not in evaluate("mine.csv").out


def test_it_says_how_questions_were_collected(evaluate, run, tmp_path):
    run("search", "what moves water to the tank", "--good", "1")
    run("search", "what moves water to the tank", "--good", "1")
    file = tmp_path / ".docindex" / "questions.jsonl"
    with file.open("a") as opened:
        opened.write('{"question": "what stops the flow", "path": "valve.py", "origin": "page"}\n')
        opened.write('{"question": "who howls", "path": "alarm.md"}\n')
        opened.write('{"question": "who howls so loud", "path": "alarm.md", "origin": "page"}\n')

    found = json.loads(evaluate(str(file), "--json").out)

    assert found["questions_from"] == [f"4 questions from {file} (collected by page 2, cli 1)"]
