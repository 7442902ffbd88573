"""The examples of docs/how-to/search-from-python.md run in order and print the output shown there."""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "search-from-python.md"
EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```\n\n```text\n(?P<printed>.*?)```", re.DOTALL)


def test_every_example_shows_what_it_prints():
    text = PAGE.read_text()

    assert len(EXAMPLE.findall(text)) == text.count("```python") > 5


@pytest.mark.parametrize("with_pandas", [False, pytest.param(True, marks=pytest.mark.extras)])
def test_examples_print_what_the_page_says(root, monkeypatch, capsys, with_pandas):
    monkeypatch.chdir(root)
    names: dict[str, Any] = {}
    if with_pandas:
        assert find_spec("pandas")

    for example in EXAMPLE.finditer(PAGE.read_text()):
        if "pandas" in example["code"] and not with_pandas:
            continue
        exec(compile(example["code"], str(PAGE), "exec"), names)
        assert re.sub(r"\b[0-9a-f]{40}\b", "COMMIT", capsys.readouterr().out) == example["printed"], example["code"]
