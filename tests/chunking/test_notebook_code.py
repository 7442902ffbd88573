"""The code cells of a notebook are parsed as one file in the language of its kernel."""

import pytest

from docindex_dagster.chunking.references import parse_code
from docindex_dagster.code.embedded_code import Code

NOTEBOOK = """{"cells": [
 {"cell_type": "markdown", "source": ["def no(): pass"]},
 {"cell_type": "code", "source": [
  "%matplotlib inline\\n",
  "!pip install x\\n",
  "def fit(x):\\n",
  "    return clean(x)\\n"
 ]},
 {"cell_type": "code", "source": "%%bash\\nls -la"},
 {"cell_type": "code", "source": "%%time\\nfit(1)"}
 ],
 "metadata": {"kernelspec": {"language": "python"}}, "nbformat": 4}"""


def notebook(text: str) -> Code:
    found = parse_code(text, "jupyter")
    assert found is not None
    return found


def test_cells_of_a_notebook_have_the_lines_of_the_file():
    code = notebook(NOTEBOOK)
    assert code.language == "python"
    assert code.lines is not None
    assert [(one.name, code.lines[one.start_line - 1]) for one in code.symbols] == [("fit", 6)]
    assert [call.name for call in code.outline.calls] == ["clean", "fit"]


@pytest.mark.parametrize(
    ("kernel", "language"), [("python", "python"), ("C++", "cpp"), ("typescript", "typescript"), ("scala", "scala")]
)
def test_a_notebook_is_in_the_language_of_its_kernel(kernel, language):
    assert notebook(NOTEBOOK.replace('"python"', f'"{kernel}"')).language == language


def test_a_notebook_of_a_language_without_symbols_has_none():
    assert parse_code(NOTEBOOK.replace('"python"', '"julia"'), "jupyter") is None
