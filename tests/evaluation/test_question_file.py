"""Question files of users: two formats, the meaning of paths, and error messages."""

import json
import os

import pytest

from docindex_dagster.core.errors import QuestionError
from docindex_dagster.core.settings import load_settings
from docindex_dagster.evaluation.question_file import read_questions
from docindex_dagster.evaluation.questions import IndexedFile

FILES = {
    "git/app": {
        "src/keys.py": IndexedFile("code", "python"),
        "src/web/session.py": IndexedFile("code", "python"),
        "src/mail/session.py": IndexedFile("code", "python"),
        "README.md": IndexedFile("doc", "markdown"),
    },
    "library/manual": {"README.md": IndexedFile("doc", "markdown"), "guide.md": IndexedFile("doc", "markdown")},
}
DECLARED = '[[source]]\nkind = "git"\npath = "code/app"\n\n[[source]]\nkind = "library"\npath = "manual"\n'


@pytest.fixture
def root(tmp_path):
    (tmp_path / "docindex.toml").write_text(DECLARED)
    return tmp_path


@pytest.fixture
def read(root, warn):
    def reading(text: str, name: str = "questions.csv"):
        (root / name).write_text(text)
        return read_questions(load_settings(root), root / name, FILES, warn)

    return reading


def targets(questions) -> dict[str, list[str]]:
    return {each.text: [f"{target.source}/{target}" for target in each.targets] for each in questions}


def test_csv_has_a_question_and_the_path_that_answers_it_with_lines_or_without(read):
    found = read(
        "question,path\n"
        "how are sessions signed,src/keys.py:10-20\n"
        '"who, and when",guide.md:7\n'
        "what is this,src/web/session.py\n"
    )

    assert targets(found) == {
        "how are sessions signed": ["git/app/src/keys.py:10-20"],
        "who, and when": ["library/manual/guide.md:7"],
        "what is this": ["git/app/src/web/session.py"],
    }
    assert [question.name for question in found] == ["questions.csv:2", "questions.csv:3", "questions.csv:4"]
    assert [question.language for question in found] == ["python", "markdown", "python"]


def test_json_lines_have_the_same_and_may_name_several_paths(read):
    lines = [
        {"question": "how are sessions signed", "path": ["src/keys.py:10-20", "guide.md"]},
        {"question": "what is this", "path": "README.md", "source": "manual"},
    ]

    found = read("\n\n".join(map(json.dumps, lines)), "questions.jsonl")

    assert targets(found) == {
        "how are sessions signed": ["git/app/src/keys.py:10-20", "library/manual/guide.md"],
        "what is this": ["library/manual/README.md"],
    }
    assert [question.name for question in found] == ["questions.jsonl:1", "questions.jsonl:3"]


def test_lines_with_the_same_question_are_one_with_several_answers(read):
    found = read("question,path\nwhat is this,src/keys.py\nwhat  is this,guide.md\nwhat is this,guide.md\n")

    assert targets(found) == {"what is this": ["git/app/src/keys.py", "library/manual/guide.md"]}


def test_a_line_may_have_how_it_was_collected(read):
    (found,) = read("question,path,source,origin\nwhat is this,guide.md,,cli\nwhat is this,keys.py,,page\n")
    (other,) = read("question,path,origin\nwhat is this,guide.md,\n")

    assert (found.origins, other.origins) == (("cli", "page"), ())


def test_in_a_source_that_is_named_a_path_is_one_of_it_before_it_is_one_on_disk(root, warn):
    (root / "docindex.toml").write_text('[[source]]\nkind = "git"\npath = "src"\n')
    (root / "questions.csv").write_text("question,path,source\nwhich one,src/a.py,src\nwhich two,src/a.py,\n")
    files = {"git/src": {path: IndexedFile("code", "python") for path in ("a.py", "src/a.py")}}

    found = read_questions(load_settings(root), root / "questions.csv", files, warn)

    assert targets(found) == {"which one": ["git/src/src/a.py"], "which two": ["git/src/a.py"]}


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("keys.py", "git/app/src/keys.py"),
        ("web/session.py", "git/app/src/web/session.py"),
        ("manual/README.md", "library/manual/README.md"),
        ("code/app/README.md", "git/app/README.md"),
        ("./manual/guide.md:3", "library/manual/guide.md:3"),
    ],
)
def test_a_path_is_one_in_a_source_or_on_disk_or_the_end_of_one(read, path, meant):
    assert targets(read(f"question,path\nwhat is this,{path}\n")) == {"what is this": [meant]}


def test_a_path_from_the_root_is_understood(read, root):
    assert targets(read(f"question,path\nwhat is this,{root}/manual/guide.md\n")) == {
        "what is this": ["library/manual/guide.md"]
    }


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("question,path\nok,keys.py\n,keys.py\n", 3, "the question is empty"),
        ("question,path\nwhat is this,\n", 2, "the path is empty"),
        ("question,path\nwhat is this\n", 2, "expected 2 values, got 1"),
        ("question,path\nwhat is this,keys.py:9-3\n", 2, "invalid lines 9-3"),
        ("question,path\nwhat is this,keys.py:0\n", 2, "invalid lines 0-0"),
        (
            "question,path\nwhat is this,session.py\n",
            2,
            "session.py is ambiguous: it matches src/web/session.py of git/app",
        ),
        ("question,path\nwhat is this,README.md\n", 2, "name the source"),
        ("question,path,source\nwhat is this,README.md,nowhere\n", 2, "source 'nowhere' not found"),
        ("q,path\nwhat is this,keys.py\n", 1, "the first line must name the columns"),
        ("", 1, "the first line must name the columns"),
        ('question,path\n"what is this,keys.py\n', 2, "unexpected end of data"),
    ],
)
def test_a_mistake_is_named_with_its_line(read, root, text, line, reason):
    with pytest.raises(QuestionError) as error:
        read(text)

    assert f"{root}/questions.csv:{line}: " in str(error.value)
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('{"question": "a", "path": "keys.py"}\n{"question": ', 2, "invalid JSON"),
        ("[1]", 1, "expected an object"),
        ('{"question": 1, "path": "keys.py"}', 1, "must be strings"),
        ('{"question": "what", "path": []}', 1, "the path is empty"),
        ('{"question": "what", "path": "keys.py", "answer": 3}', 1, "expected an object"),
        ("[" * 100_000, 1, "invalid JSON"),
        ('{"question": "what", "path": "a\\u0000b"}', 1, "NUL"),
        ('{"question": "what", "path": "keys.py", "origin": "rumour"}', 1, "must be one of cli, page, api, mcp"),
        ('{"question": "what", "path": "keys.py", "origin": ["cli"]}', 1, "must be one of cli, page, api, mcp"),
    ],
)
def test_so_it_is_in_json_lines(read, root, text, line, reason):
    with pytest.raises(QuestionError) as error:
        read(text, "questions.jsonl")

    assert f"{root}/questions.jsonl:{line}: " in str(error.value)
    assert reason in str(error.value)


def test_the_first_of_many_mistakes_are_shown_and_the_others_counted(read):
    with pytest.raises(QuestionError) as error:
        read("question,path\n" + ",keys.py\n" * 8)

    assert str(error.value).count("the question is empty") == 5
    assert str(error.value).endswith("and 3 more")


def test_a_line_whose_path_is_not_indexed_is_left_out_with_a_warning(read, root, warnings):
    found = read("question,path\nwhat is this,gone.py\nwho is that,keys.py\n")

    assert list(targets(found)) == ["who is that"]
    assert warnings == [f"{root}/questions.csv:2: skipped, because gone.py is not indexed"]


def test_a_file_of_which_nothing_is_indexed_is_a_mistake(read):
    with pytest.raises(QuestionError, match="docindex why"):
        read("question,path\nwhat is this,gone.py\n")


def test_a_file_of_another_kind_is_refused(read):
    with pytest.raises(QuestionError, match=r"expected a \.csv file"):
        read("question,path\n", "questions.txt")


def test_a_file_that_is_no_text_is_refused(read, root, warn):
    (root / "questions.csv").write_bytes(b"question,path\nwhat \xff,keys.py\n")

    with pytest.raises(QuestionError, match="not UTF-8"):
        read_questions(load_settings(root), root / "questions.csv", FILES, warn)


@pytest.mark.parametrize("kind", ["FIFO", "device"])
def test_what_is_no_regular_file_is_not_read(root, warn, kind):
    file = root / "questions.csv"
    os.mkfifo(file) if kind == "FIFO" else file.symlink_to("/dev/null")

    with pytest.raises(OSError, match="not a regular file"):
        read_questions(load_settings(root), file, FILES, warn)


def test_a_mark_of_the_byte_order_and_lines_of_windows_do_no_harm(read):
    assert targets(read("\ufeffquestion,path\r\nwhat is this,keys.py\r\n")) == {"what is this": ["git/app/src/keys.py"]}
