"""Suggested commands are safe to paste, whatever the names of files and folders contain."""

import ast
import re
from pathlib import Path

import docindex_dagster
from docindex_dagster.core.safe_text import command

_VALUE = "\0"
_PROGRAMS = r"(docindex|git|find|chmod|ollama|pip|env|[A-Z_]+=\S*)"
_SUGGESTED = re.compile(rf"`{_PROGRAMS} [^`]*{_VALUE}|\b(git config|chmod \S+|pip install|rm) {_VALUE}|\(find {_VALUE}")


def test_a_name_is_one_word_for_a_shell():
    assert command("docindex", "index", "library/x;touch pwned;") == "`docindex index 'library/x;touch pwned;'`"


def test_no_message_suggests_a_command_with_a_name_that_is_not_quoted():
    package = Path(docindex_dagster.__file__).parent
    found = [
        f"{file.relative_to(package)}:{node.lineno}: {text}"
        for file in package.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(node, ast.JoinedStr) and _SUGGESTED.search(text := _text(node))
    ]

    assert found == []


def _text(node: ast.JoinedStr) -> str:
    return "".join(str(part.value) if isinstance(part, ast.Constant) else _VALUE for part in node.values)


def test_a_source_whose_name_is_a_command_is_shown_quoted(hostile):
    (hostile.root / "libs/x;touch pwned;").mkdir(parents=True)
    (hostile.root / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "libs/{library}"\n')

    shown = hostile.run("status").stdout

    assert "`docindex index 'library/x;touch pwned;'`" in " ".join(shown.split())
