"""`docindex support` reports what a bug report needs and never leaks a secret, wherever it is stored."""

import json
import os
import stat
import subprocess
from collections.abc import Iterator

import pytest

from docindex_dagster.cli import dagster_runs
from docindex_dagster.status.source_status import Runs

_SEEN = 8  # length in characters of a key fragment that must not occur
# No key shares an eight-character substring with the regular output.
KEYS = {
    "a text": "sk-proj-Zq83LxVw71RtYpKmNb42HsDf",
    "a password that is a word": "swordfishmonger",
    "a name of a file": "ghp_9fKQ2mXv7TzWc4Lr8NbYd1HsAe5Gu3Jp0RiO",
    "a folder": "customer-Blackwood-7719",
    "a model": "ft:acme-hidden-beast-88213",
    "a URL": "https://deploy:hunter2hunter2@git.acme-internal.example/team/vault.git",
    "a URL's token": "tok_51HxYvZqWpLsNd",
    "a setting": "Quarterly-Numbers-Of-Acme",
    "a variable": "xoxb-4417-PqRsTuVwXyZ-001",
    "a token of the server": "S3rv3rT0kenOfTheTestSuite",
    "a webhook": "https://hooks.example/services/T0AAAA/B0BBBB/CcDdEeFfGg",
    "a failure": "AKIAIOSFODNN7EXAMPLQ",
    "a name of a variable": "ZEBRAFISH_OF_THE_USER",
}


def pieces(key: str) -> Iterator[str]:
    """Return every eight-character substring of a key."""
    return (key[start : start + _SEEN] for start in range(len(key) - _SEEN + 1))


@pytest.fixture
def planted(run, tmp_path, monkeypatch):
    """An indexed project with a key in each possible location, and a last run whose error contains one."""
    folder = tmp_path / KEYS["a folder"]
    folder.mkdir()
    (folder / "notes.md").write_text(
        f"# Notes\n\nThe key is {KEYS['a text']}, the word {KEYS['a password that is a word']}.\n"
    )
    (folder / f"{KEYS['a name of a file']}.md").write_text("# A page\n\nSome words.\n")
    (tmp_path / "api_token.txt").write_text(KEYS["a text"])
    assert run("index", str(folder)).code == 0
    config = tmp_path / "docindex.toml"
    config.write_text(config.read_text() + _settings())
    monkeypatch.setenv("DOCINDEX_LLM__API_KEY", KEYS["a variable"])
    monkeypatch.setenv("DOCINDEX_SERVE__TOKEN", KEYS["a token of the server"])
    monkeypatch.setenv("DOCINDEX_ALERTS__WEBHOOK", KEYS["a webhook"])
    monkeypatch.setenv(KEYS["a name of a variable"], KEYS["a variable"])
    message = (
        f"chunks: SourceError: {folder}: no answer to {KEYS['a failure']} from {KEYS['a URL']}; "
        f"password={KEYS['a password that is a word']}, which is {KEYS['a variable']}, is wrong"
    )
    key = f"library/{KEYS['a folder']}"
    monkeypatch.setattr(dagster_runs, "outcomes", lambda _: {key: Runs("failed", "1", None, "1", message)})
    return run


def _settings() -> str:
    token = KEYS["a URL's token"]
    return f"""
[llm]
provider = "ollama"
model = "{KEYS["a model"]}"
base_url = "http://127.0.0.1:11434/{token}"

[rerank]
provider = "remote"
url = "https://rerank.example/{token}?token={token}"

[search]
default_source = "{KEYS["a setting"]}"
top_k = 7

[evaluation]
file = "/{KEYS["a folder"]}/{KEYS["a setting"]}.csv"
"""


@pytest.mark.parametrize("arguments", [("support",), ("support", "--json"), ("support", "--quick", "--json")])
def test_no_eight_bytes_of_a_planted_key_are_shown(planted, arguments):
    output = planted(*arguments)
    assert output.code == 0
    shown = [(what, piece) for what, key in KEYS.items() for piece in pieces(key) if piece in output.out]
    assert not shown


def test_a_url_with_a_password_breaks_the_settings_and_is_not_shown(planted, tmp_path):
    config = tmp_path / "docindex.toml"
    config.write_text(config.read_text() + f'\n[[source]]\nkind = "git"\nurl = "{KEYS["a URL"]}"\n')
    report = json.loads(planted("support", "--json").out)
    assert report["project"]["problem"].startswith("SettingsError: ")
    assert not [piece for key in KEYS.values() for piece in pieces(key) if piece in json.dumps(report)]


def test_a_report_tells_what_explains_a_bug(planted):
    report = json.loads(planted("support", "--json").out)
    assert report["versions"]["docindex"]
    assert report["project"]["declared"] == {"libraries": 1}
    assert report["project"]["settings"]["search.top_k"] == 7
    assert report["project"]["settings"]["llm.provider"] == "ollama"
    assert report["project"]["settings"]["llm.base_url"] == "(http, this machine)"
    assert report["project"]["settings"]["rerank.url"] == "(https, elsewhere)"
    assert report["project"]["settings"]["serve.token"] == "(set)"
    assert report["index"]["chunks"] == 2
    assert report["sources"]["states"] == {"failed": 1}
    assert report["sources"]["failures"] == ["chunks: SourceError: … no answer to … from … which is … is wrong"]
    assert report["doctor"] == {"findings": 0, "first": []}
    assert {"tables", "stores"} <= report["sizes"].keys()
    assert {"DOCINDEX_LLM__API_KEY", "DOCINDEX_SERVE__TOKEN"} <= {*report["variables"]}


def test_with_paths_it_names_sources_without_what_is_found_to_be_secret(planted):
    report = json.loads(planted("support", "--json", "--quick", "--paths").out)
    assert report["paths"]["declared"] == [KEYS["a folder"]]
    assert report["paths"]["sources"] == {f"library/{KEYS['a folder']}": "failed"}
    (failure,) = report["paths"]["failures"].values()
    assert "no answer to" in failure
    assert not [key for key in ("hunter2", KEYS["a variable"]) if key in failure]


def test_a_damaged_store_is_found_and_does_not_stop_the_report(planted, tmp_path):
    (tmp_path / ".docindex/stores/CURRENT").write_text("{")
    report = json.loads(planted("support", "--json").out)
    assert report["index"]["problem"].startswith("StoreError: ")
    assert report["doctor"]["findings"] == 1
    assert report["disk"]["free_MB"] > 0


def test_where_there_is_no_project_it_tells_the_versions(run):
    report = json.loads(run("support", "--json").out)
    assert report["project"]["has_file"] is False
    assert report["index"] == {"generation": None}
    assert report["sizes"] == {}


def test_it_can_be_written_to_a_file(run, tmp_path):
    output = run("support", "--quick", "--output", "report.txt")
    assert output.code == 0
    assert "read it before you share it" in output.out
    assert "versions:" in (tmp_path / "report.txt").read_text()
    assert stat.S_IMODE((tmp_path / "report.txt").stat().st_mode) == 0o600


def test_it_is_written_through_a_link_into_the_file_that_is_there(run, tmp_path):
    (tmp_path / "there.txt").write_text("something longer than the report " * 1000)
    (tmp_path / "there.txt").chmod(0o644)
    (tmp_path / "link.txt").symlink_to("there.txt")
    assert run("support", "--quick", "--json", "--output", "link.txt").code == 0
    assert (tmp_path / "link.txt").is_symlink()
    assert json.loads((tmp_path / "there.txt").read_text())["versions"]
    assert stat.S_IMODE((tmp_path / "there.txt").stat().st_mode) == 0o644


def test_a_pipe_is_written_to_and_stays(run, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run("support", "--quick", "--json", "--output", "pipe").code == 0
        assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
        assert json.loads(os.read(reader, 1 << 16))["versions"]
    finally:
        os.close(reader)


def test_a_folder_is_refused_by_its_name(run):
    output = run("support", "--quick", "--output", "manual")
    assert output.code == 2
    assert "manual is a folder" in output.err


def test_without_git_the_report_says_so(run, monkeypatch):
    def missing(*_arguments, **_options):
        raise FileNotFoundError(2, "No such file or directory", "git")

    monkeypatch.setattr(subprocess, "run", missing)
    assert json.loads(run("support", "--json", "--quick").out)["system"]["git"] is None


def test_version_tells_its_number_and_all_that_decides_how_it_behaves(run):
    shown = run("version")
    printed = json.loads(run("version", "--json").out)
    assert printed["docindex"] == shown.out.strip() == run("--version").out.strip()
    assert {"dagster", "lancedb", "tantivy", "pyarrow"} <= printed["packages"].keys()
    assert {"stores", "chunks", "graph"} <= printed["schemas"].keys()
    assert printed["model"]["name"].endswith(printed["model"]["sha256"][:8])
