"""Parts of a bug report, told apart by their form."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.search.report import Frame, is_report, parse_report

REPORT = """\
Pump stops when `open_valve` is called twice

<!-- Thanks for taking the time! -->
### Description
The second call of open_valve stops the pump, see docs/pump.md and `flow.Valve`.

```python
pump.start()
```

Traceback (most recent call last):
  File "/home/ada/venv/lib/python3.11/site-packages/mill/core.py", line 12, in run
    step()
  File "/home/ada/mill/src/flow/valve.py", line 40, in open_valve
    self.check()
ValveError: already open

After that nothing moves.

**Environment**
- Python version: 3.11.2
- [x] I have searched the existing issues
![screenshot](https://example.com/shot.png)
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [("one line", False), ("a title\n", False), ("\n a title\n\n", False), ("a title\nand a body", True), ("", False)],
)
def test_a_report_has_a_title_and_a_body(text, expected):
    assert is_report(text) is expected


def test_the_title_is_the_first_line():
    assert parse_report(REPORT).title == "Pump stops when `open_valve` is called twice"


def test_prose_has_neither_code_nor_output_nor_template():
    lines = [line for line in parse_report(REPORT).prose.split("\n") if line.strip()]

    assert lines == [
        "The second call of open_valve stops the pump, see docs/pump.md and `flow.Valve`.",
        "After that nothing moves.",
    ]


def test_identifiers_are_words_quoted_or_spelled_as_code():
    assert parse_report(REPORT).identifiers == ("open_valve", "flow", "Valve")


def test_paths_and_dotted_names_are_found():
    report = parse_report(REPORT)

    assert "docs/pump.md" in report.paths
    assert ("flow", "Valve") in report.names


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        ('  File "src/flow/valve.py", line 40, in open_valve', Frame("src/flow/valve.py", 40)),
        ("File ~/mill/src/flow/valve.py:40, in open_valve(self)", Frame("~/mill/src/flow/valve.py", 40)),
        ("\tat org.mill.flow.Valve.open(Valve.java:40)", Frame("Valve.java", 40)),
        ("    at open (/srv/mill/src/valve.js:40:7)", Frame("/srv/mill/src/valve.js", 40)),
        ("  --> src/flow/valve.rs:40:5", Frame("src/flow/valve.rs", 40)),
        ("\t/home/ada/mill/flow/valve.go:40 +0x1d", Frame("/home/ada/mill/flow/valve.go", 40)),
        ("src/flow/valve.c:40:12: error: expected ';'", Frame("src/flow/valve.c", 40)),
        ("C:\\mill\\src\\valve.cpp:40", Frame("C:/mill/src/valve.cpp", 40)),
    ],
)
def test_frames_of_many_languages_are_found(line, frame):
    assert frame in parse_report(f"It crashes\n{line}\n").frames


@given(st.text(), st.text())
def test_any_text_is_a_report(title, body):
    report = parse_report(f"{title}\n{body}")

    assert "\n" not in report.title


@pytest.mark.parametrize("part", ["<!--", "`", "* **", "a.b", "a/", "- [ ", 'File "', "at a.b(", "a1", "[x](", "A A:"])
def test_parsing_takes_time_in_proportion_to_the_length(part):
    started = time.process_time()
    parse_report("title\n" + part * 30_000)

    assert time.process_time() - started < 5
