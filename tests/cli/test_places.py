"""Opening results: typed, linked by a terminal, opened in an editor, and listed like grep does."""

import json
import os
import shutil
from pathlib import Path

import pytest
from rich.text import Text

from docindex_dagster.render import console
from tests.cli.conftest import index_in

WELL = "class Well:\n    def dig(self):\n        return 'dug'\n\n    def fill(self):\n        return 'water table'\n"


def write(folder: Path) -> None:
    (folder / "manual/well.py").write_text(WELL)
    (folder / "manual/odd name;$(x)'\x1b.py").write_text("def odd_one():\n    return 'seldom'\n")


@pytest.fixture(scope="module")
def wells(tmp_path_factory) -> Path:
    return index_in(tmp_path_factory.mktemp("wells"), write=write)


@pytest.fixture
def indexed(run, wells, tmp_path):
    shutil.copytree(wells, tmp_path, dirs_exist_ok=True)
    return run


def test_a_result_begins_with_a_path_that_can_be_typed_here(indexed, monkeypatch):
    first = indexed("search", "water table", "--language", "python", "-k", "1").out.splitlines()[0]
    assert first.startswith(" 1 manual/well.py:6  ")

    monkeypatch.setenv("DOCINDEX_ROOT", str(Path.cwd()))
    monkeypatch.chdir("manual")
    assert indexed("search", "water table", "-k", "1").out.startswith(" 1 well.py:6  ")
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert indexed("search", "water table", "-k", "1").out.startswith(" 1 ../well.py:6  ")


def test_the_symbol_is_the_one_at_the_line(indexed):
    assert "  Well.fill  1-6" in indexed("search", "water table", "--language", "python", "-k", "1").out


def test_json_says_file_line_column_and_symbol(indexed):
    (hit,) = json.loads(indexed("search", "water table", "--language", "python", "-k", "1", "--json").out)
    assert hit["file"] == str(Path.cwd() / "manual" / "well.py")
    assert (hit["source"], hit["path"], hit["line"], hit["column"]) == ("library/manual", "well.py", 6, 17)
    assert (hit["symbol"], hit["start_line"], hit["end_line"]) == ("Well.fill", 1, 6)


def test_a_chunk_that_is_shown_names_its_file(indexed, monkeypatch):
    assert indexed("show", "well.py").out.splitlines()[0] == "manual/well.py:1  1-6  library/manual"
    (row,) = json.loads(indexed("show", "well.py", "--json").out)
    assert (row["file"], row["start_line"]) == (str(Path.cwd() / "manual" / "well.py"), 1)


def test_on_a_terminal_a_place_is_a_link_that_no_name_breaks_out_of(indexed):
    (hit,) = json.loads(indexed("search", "seldom", "-k", "1", "--json").out)
    file = hit["file"]
    shown = console.place(_hit(hit), Path("/nowhere"))
    assert isinstance(shown, Text)
    with Path(os.devnull).open("w") as nowhere:
        terminal = console.VisibleConsole(force_terminal=True, color_system="standard", file=nowhere, record=True)
        terminal.print(shown)
        printed = terminal.export_text(styles=True)
    assert f";{Path(file).as_uri()}\x1b\\" in printed
    assert "\x1b.py" not in printed
    assert "%1B.py" in printed


def _hit(row):
    from docindex_dagster.search.matches import Match

    return Match(row["source"], row["path"], row["line"], row["column"], 1, "", "", row["file"])


@pytest.mark.parametrize(
    ("editor", "arguments"),
    [
        ("vim", ["+6", "{file}"]),
        ("emacs -nw", ["-nw", "+6", "{file}"]),
        ("code --wait", ["--wait", "--goto", "{file}:6"]),
        ("subl", ["{file}:6"]),
        ("other", ["{file}"]),
    ],
)
def test_open_starts_the_editor_at_the_line(indexed, monkeypatch, tmp_path, editor, arguments):
    name, _, options = editor.partition(" ")
    program = tmp_path / name
    program.write_text(f'#!/bin/sh\nfor one in "$@"; do echo "$one"; done > {tmp_path}/started\n')
    program.chmod(0o755)
    monkeypatch.setenv("EDITOR", f"'{program}' {options}")

    assert indexed("search", "water table", "--language", "python", "--open", "1").code == 0

    file = str(Path.cwd() / "manual" / "well.py")
    assert (tmp_path / "started").read_text().splitlines() == [one.format(file=file) for one in arguments]


def test_a_name_with_the_signs_of_a_shell_is_an_argument(indexed, monkeypatch):
    monkeypatch.setenv("VISUAL", "touch -c")
    assert indexed("search", "seldom", "--mode", "literal", "--open", "1").code == 0


@pytest.mark.parametrize(
    ("editor", "number", "message"),
    [
        ("", "1", "set VISUAL or EDITOR"),
        ("no-such-editor", "1", "cannot start the editor"),
        ("vim", "9", "result 9 not found"),
    ],
)
def test_what_cannot_be_opened_is_reported(indexed, monkeypatch, editor, number, message):
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", editor)
    refused = indexed("search", "water table", "-k", "2", "--open", number)
    assert refused.code == 1
    assert message in " ".join(refused.err.split())


def test_matches_are_listed_as_grep_lists_them(indexed):
    listed = indexed("search", "--mode", "literal", "return '")
    assert [line for line in listed.out.splitlines() if "well" in line] == [
        "manual/well.py:3:9:        return 'dug'",
        "manual/well.py:6:9:        return 'water table'",
    ]
    assert listed.err == "3 matches in 2 files\n"


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        (["--count"], ["manual/guide.md:2", "manual/pump.py:1"]),
        (["--files"], ["manual/guide.md", "manual/pump.py"]),
        (
            ["-k", "1"],
            ["manual/guide.md:5:16:The pump moves water from the well"],
        ),
        (["-C", "1", "--path", "pump.py"], ["manual/pump.py-1-def", "manual/pump.py:2:27:", "manual/pump.py-3-"]),
    ],
)
def test_matches_are_counted_named_and_shown_with_lines_around(run_indexed, options, lines):
    found = run_indexed("search", "--mode", "regex", "w(ater|ell)", *options).out.splitlines()
    assert len(found) == len(lines)
    assert all(line.startswith(start) for line, start in zip(found, lines, strict=True))


def test_what_is_left_out_is_reported_and_all_can_be_had(run_indexed):
    assert run_indexed("search", "-m", "literal", "e", "-k", "2").err.endswith(" in 2 files; --top-k 0 shows all\n")
    everything = run_indexed("search", "-m", "literal", "e", "-k", "0")
    assert everything.err == f"{len(everything.out.splitlines())} matches in 2 files\n"


def test_what_a_page_shows_otherwise_is_found_as_its_file_has_it_but_for_secrets(run):
    key = "glpat" + "-" + "Zx7Qm2Wk9Lp4Rt8Vb3Nc"
    Path("manual/page.html").write_text(
        f"<html><body>\n<h1>Valves</h1>\n<p>See <a href='https://example.org/valve'>it</a>, {key}</p>\n</body></html>\n"
    )
    assert run("index", "manual").code == 0

    listed = run("search", "--mode", "regex", "href=.https?://\\S+valve|<h1>", "-C", "1").out.splitlines()

    assert listed[0] == "manual/page.html-1-<html><body>"
    assert listed[1] == "manual/page.html:2:1:<h1>Valves</h1>"
    assert listed[2].startswith("manual/page.html:3:11:<p>See <a href='https://example.org/valve'>it</a>, ***")
    assert run("search", "--mode", "literal", key).code == 1
    Path("manual/page.html").write_text("<p>Valves</p>\n")
    assert run("search", "--mode", "literal", "example.org/valve").code == 1


def test_a_text_that_is_nowhere_gives_the_exit_code_of_grep(run_indexed):
    assert run_indexed("search", "-m", "literal", "nowhere").code == 1
    assert run_indexed("search", "-m", "literal", "nowhere", "--json").code == 1
    assert run_indexed("search", "nowhere").code == 0


@pytest.mark.parametrize("option", [["--count"], ["--files"], ["-C", "2"], ["-k", "0"]])
def test_options_of_listings_are_refused_elsewhere(run_indexed, option):
    refused = run_indexed("search", "pump", *option)
    assert refused.code == 2
    assert "mode literal or" in refused.err


def test_a_file_that_changed_since_is_marked(run_indexed):
    Path("manual/pump.py").write_text("def prime_pump():\n    pass\n")
    assert "changed since it was indexed" in run_indexed("search", "-m", "literal", "prime_pump").out
