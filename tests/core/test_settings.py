"""Settings: the file, overrides from the environment, and errors that name the location and the problem."""

import os
import traceback
from pathlib import Path

import pytest

from docindex_dagster.core.errors import SettingsError
from docindex_dagster.core.settings import find_root, load_settings


def write(root: Path, text: str) -> Path:
    (root / "docindex.toml").write_text(text)
    return root


def test_the_file_is_found_upwards(tmp_path):
    write(tmp_path, "")
    (tmp_path / "a/b").mkdir(parents=True)

    assert find_root(tmp_path / "a/b") == tmp_path


def test_the_file_is_not_looked_for_in_a_ceiling_folder_nor_above(tmp_path, monkeypatch):
    write(tmp_path, "")
    inner = tmp_path / "ceiling/a/b"
    inner.mkdir(parents=True)
    monkeypatch.setenv("DOCINDEX_CEILING_DIRECTORIES", f"/elsewhere:{tmp_path / 'ceiling'}")

    assert find_root(inner) == inner
    write(inner.parent, "")
    assert find_root(inner) == inner.parent


def test_a_project_that_begins_in_the_ceiling_folder_is_found_there(tmp_path, monkeypatch):
    write(tmp_path, "")
    monkeypatch.setenv("DOCINDEX_CEILING_DIRECTORIES", str(tmp_path))

    assert find_root(tmp_path) == tmp_path


def test_tests_have_no_project_around_them(tmp_path):
    above = tmp_path.parent / "docindex.toml"
    above.touch()
    try:
        assert find_root(tmp_path) == tmp_path
    finally:
        above.unlink()


def test_a_variable_wins_over_the_file(tmp_path, monkeypatch):
    write(tmp_path, "[search]\ntop_k = 5\ncandidates = 50\n")
    monkeypatch.setenv("DOCINDEX_SEARCH__TOP_K", "7")

    search = load_settings(tmp_path).search

    assert (search.top_k, search.candidates) == (7, 50)


def test_settings_are_parsed_once_until_the_file_or_a_variable_changes(tmp_path, monkeypatch):
    write(tmp_path, "[search]\ntop_k = 11\n")
    first = load_settings(tmp_path)
    assert load_settings(tmp_path) is first

    stamp = (tmp_path / "docindex.toml").stat()
    write(tmp_path, "[search]\ntop_k = 12\n")
    os.utime(tmp_path / "docindex.toml", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert load_settings(tmp_path).search.top_k == 12

    monkeypatch.setenv("DOCINDEX_SEARCH__TOP_K", "13")
    assert load_settings(tmp_path).search.top_k == 13
    monkeypatch.delenv("DOCINDEX_SEARCH__TOP_K")
    assert load_settings(tmp_path).search.top_k == 12
    (tmp_path / "docindex.toml").unlink()
    assert load_settings(tmp_path).search.top_k == 10


def test_two_projects_with_the_same_file_have_settings_of_their_own(tmp_path):
    roots = [tmp_path / "a", tmp_path / "b"]
    for root in roots:
        root.mkdir()
        write(root, "")

    assert [load_settings(root).home for root in roots] == [root / ".docindex" for root in roots]


def test_the_index_lies_beside_the_file_unless_a_variable_moves_it(tmp_path, monkeypatch):
    write(tmp_path, "")
    assert load_settings(tmp_path).home == tmp_path / ".docindex"

    monkeypatch.setenv("DOCINDEX_HOME", str(tmp_path / "elsewhere"))

    assert load_settings(tmp_path).home == tmp_path / "elsewhere"


def test_settings_that_say_that_the_index_is_one_still_load(tmp_path, monkeypatch):
    url = load_settings(write(tmp_path, "[storage]\nurl = 's3://bucket/prefix'\ncells = 1\n")).storage.url
    monkeypatch.setenv("DOCINDEX_STORAGE__CELLS", "1")
    assert load_settings(tmp_path).storage.url == url == "s3://bucket/prefix"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[search]\ntop_k = 0\n", "search.top_k"),
        ("[discovery]\nmax_file_bytes = 209000000\n", "max_file_bytes: Input should be less than or equal to 16777216"),
        ("[search]\ntopk = 3\n", "unknown setting search.topk"),
        ("[sarch]\n", "unknown setting sarch"),
        ("[embedding]\nprovider = 'magic'\n", "'static'"),
        ("[[source]]\nkind = 'svn'\npath = '.'\n", "'library' or 'git'"),
        ("[[source]]\nkind = 'git'\npath = '.'\nname = '../x'\n", "source.0.name"),
        ("[[source]]\nkind = 'library'\npath = '{library}/x'\n", "must be the last component"),
        ("[schedule]\nnightly = 'at night'\n", "cron"),
        ("[schedule]\ntimezone = 'Mars/Base'\n", "IANA"),
        ("[[source]]\nkind = 'git'\npath = '~nobody-of-this-name/x'\n", "home folder"),
        ("[[source]]\nkind = 'git'\npath = \"nul\\u0000x\"\n", "NUL"),
        ("[[source]]\nkind = 'git'\n", "source.0: must have path or url"),
        ("[[source]]\nkind = 'git'\npath = '.'\nurl = 'https://h/x'\n", "path or url, not both"),
        ("[[source]]\nkind = 'library'\n", "must have path"),
        ("[[source]]\nkind = 'library'\npath = '.'\nbranch = 'x'\n", "branch requires kind = 'git'"),
        ("[[source]]\nkind = 'library'\npath = '.'\nname = 'a@b'\n", "'@' in name requires kind = 'git'"),
        ("[[source]]\nkind = 'git'\nurl = 'https://h/x'\nname = 'a@b'\n", "NAME@LABEL"),
        ("[[source]]\nkind = 'git'\npath = '.'\nname = 'a@b..c'\n", "source.0.name: must be a branch or tag name"),
        ("[[source]]\nkind = 'git'\npath = '.'\nbranch = '--all'\n", "source.0.branch"),
        ("[[source]]\nkind = 'git'\npath = '.'\nbranches = ['a', 'a b']\n", "source.0.branches.1"),
        ("[[source]]\nkind = 'git'\npath = '.'\nbranches = ['a', 'a']\n", "each branch once"),
        ("[[source]]\nkind = 'git'\npath = '.'\nbranch = 'a'\nbranches = ['a']\n", "each branch once"),
        ("[[source]]\nkind = 'git'\nurl = 'ext::sh -c x'\n", "source.0.url: is not a repository URL; use"),
        ("[storage]\ncells = 2\n", "storage.cells: Input should be less than or equal to 1"),
        ("home = '/tmp'\n", "DOCINDEX_HOME"),
        ("not toml", "cannot read"),
    ],
)
def test_a_mistake_is_reported_with_its_file_key_and_what_is_allowed(tmp_path, text, message):
    with pytest.raises(SettingsError) as caught:
        load_settings(write(tmp_path, text))

    assert message in str(caught.value)
    assert "docindex.toml" in str(caught.value)


def test_a_file_that_is_too_large_is_refused(tmp_path):
    with (tmp_path / "docindex.toml").open("wb") as file:
        file.truncate(2 << 20)

    with pytest.raises(SettingsError, match=r"docindex\.toml is too large"):
        load_settings(tmp_path)


def test_a_wrong_variable_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCINDEX_SEARCH__TOP_K", "many")

    with pytest.raises(SettingsError, match="DOCINDEX_SEARCH__TOP_K"):
        load_settings(tmp_path)


def test_a_variable_that_is_no_json_is_a_line(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCINDEX_SOURCE", "not json")

    with pytest.raises(SettingsError, match="DOCINDEX_"):
        load_settings(tmp_path)


def test_a_variable_names_the_project_from_anywhere(tmp_path, monkeypatch):
    (tmp_path / "project").mkdir()
    write(tmp_path / "project", "[search]\ntop_k = 4\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCINDEX_ROOT", str(tmp_path / "project"))

    settings = load_settings()

    assert (settings.root, settings.search.top_k) == (tmp_path / "project", 4)


@pytest.mark.parametrize(
    "line",
    [
        "url = 'https://ada:s3cret@h/x'",
        "url = ['https://ada:s3cret@h/x']",
        "url = 'https://h/x'\nbranch = ['https://ada:s3cret@h/x']",
        "path = '.'\nurl = 'https://ada:s3cret@h/x'",
        "path = '.'\nurl = 'https://s3cret@h/x'",
        "path = '.'\nurl = 'ssh://ada:s3cret@h/x'",
        "urls = 'https://ada:s3cret@h/x'",
    ],
)
def test_a_password_in_a_url_is_not_repeated_by_the_error_nor_by_its_traceback(tmp_path, line):
    with pytest.raises(SettingsError) as caught:
        load_settings(write(tmp_path, f"[[source]]\nkind = 'git'\n{line}\n"))

    assert "s3cret" not in "".join(traceback.format_exception(caught.value))
