"""`--path` accepts what a user types for a file or folder; filters that match nothing are named."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import index_in


def write(folder: Path) -> None:
    for name in ("manual", "other"):
        (folder / name / "src" / "flask").mkdir(parents=True)
        (folder / name / "src" / "flask" / "app.py").write_text(f"def {name}_valve():\n    return 'valve'\n")
        (folder / name / "top.md").write_text("# Top\n\nThe valve of the page.\n")


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory):
    return index_in(tmp_path_factory.mktemp("indexed"), "other", write=write)


@pytest.fixture
def indexed(run_indexed, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCINDEX_ROOT", str(tmp_path))
    return run_indexed


def paths(run, *arguments: str) -> set[tuple[str, str]]:
    found = run("search", "valve", "--json", *arguments)
    assert found.code == 0, found.err
    return {(hit["source"].partition("/")[2], hit["path"]) for hit in json.loads(found.out)}


BOTH = {("manual", "src/flask/app.py"), ("other", "src/flask/app.py")}
ONE = {("manual", "src/flask/app.py")}


@pytest.mark.parametrize(
    ("folder", "given", "found"),
    [
        (".", "src/flask", BOTH),
        (".", "src/flask/", BOTH),
        (".", "manual/src/flask", ONE),
        (".", "./manual/src", ONE),
        (".", "manual/src/flask/app.py", ONE),
        (".", "{root}/manual/src", ONE),
        (".", "{root}/manual/src/**/*.py", ONE),
        ("manual", "src/flask", ONE),
        ("manual", "./src/*/*.py", ONE),
        ("manual", "../other/src", {("other", "src/flask/app.py")}),
        ("manual/src", "flask", ONE),
        ("manual", "top.md", {("manual", "top.md")}),
        ("manual/src", "*.md", {("manual", "top.md"), ("other", "top.md"), ("manual", "guide.md")}),
    ],
)
def test_a_path_is_one_on_disk_or_one_in_the_sources(indexed, monkeypatch, folder, given, found):
    root = Path.cwd()
    monkeypatch.chdir(folder)
    assert paths(indexed, "--path", given.format(root=root)) == found


def test_the_folder_of_a_source_means_the_source(indexed, tmp_path):
    assert {source for source, _ in paths(indexed, "--path", str(tmp_path / "other"))} == {"other"}


def test_a_path_from_the_root_in_no_source_is_refused(indexed, tmp_path):
    refused = indexed("search", "valve", "--path", str(tmp_path.parent))
    assert refused.code == 1
    assert "is not in any source" in refused.err


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        (["--kind", "interface"], "no indexed file has an interface"),
        (["--type", "config"], "no indexed file is of type config"),
        (["--language", "python", "-s", "manual", "--kind", "class"], "no indexed file of library/manual has a class"),
        (["--language", "markdown", "--kind", "function"], "matches all filters together"),
        (["--path", "src/nowhere"], "has the path 'src/nowhere' relative to its source"),
    ],
)
@pytest.mark.parametrize("mode", ["hybrid", "literal"])
def test_filters_that_nothing_meets_are_named(indexed, filters, message, mode):
    refused = indexed("search", "valve", "--mode", mode, *filters)
    assert refused.code == 1
    assert message in " ".join(refused.err.split())


def test_the_log_takes_a_path_on_disk(indexed):
    assert indexed("log", "--path", str(Path.cwd() / "manual" / "src")).code == 0


def test_where_a_filter_keeps_nothing_that_is_all_that_is_reported(indexed):
    answer = indexed("search", "kafka connector", "--path", "nowhere")

    assert answer.code == 1
    assert "no indexed file has the path 'nowhere'" in answer.err
    assert "close to the query" not in answer.err


def test_results_name_their_source_only_where_there_may_be_several(indexed):
    assert "library/manual" in indexed("search", "valve").out
    assert "library/manual" not in indexed("search", "valve", "--source", "manual").out
    assert "library/other" in indexed("similar", "manual/top.md", "--top-k", "5").out
    assert "library/manual" not in indexed("similar", "manual/top.md", "--source", "manual").out
