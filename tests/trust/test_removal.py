"""`docindex source remove` grants nothing and revokes trust in what it removes."""

import pytest

from tests.trust.conftest import PRIVATE

OWN = '[[source]]\nkind = "library"\npath = "."\nname = "own"\n'


@pytest.fixture
def own(hostile):
    (hostile.root / "docindex.toml").write_text(OWN)
    (hostile.root / "dagster.yaml").unlink()
    return hostile


def repository(folder, git, text):
    folder.mkdir(exist_ok=True)
    (folder / "page.md").write_text(f"# Page\n\n{text}\n")
    git(folder, "init", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "one")
    git(folder, "branch", "dev")
    return folder


@pytest.mark.parametrize("more", [(), ("--trust",)])
def test_removing_a_branch_grants_nothing_of_a_table_that_a_pull_put_in_the_place_of_its_own(own, git, more):
    wanted, private = (repository(own.user / name, git, text) for name, text in (("lib", "Valves."), ("x", PRIVATE)))
    settings = own.root / "docindex.toml"
    settings.write_text('serve = { hosts = ["evil.example"] }\n' + OWN)
    for words in (("--branch", "main", "--name", "lib"), ("--branch", "dev")):
        assert own.run("source", "add", str(wanted), *words).returncode == 0
    assert own.run("index").returncode == 0
    settings.write_text(settings.read_text().replace(str(wanted), str(private)))

    assert own.run(*more, "source", "remove", "git/lib@dev").returncode == 0

    listed = own.run("source", "list")
    assert f"{private} (" in listed.stderr
    assert str(private) not in listed.stdout


@pytest.mark.parametrize("how", ["its key", "all of its folder", "no table is left"])
def test_what_was_removed_is_asked_for_again_when_a_pull_brings_it_back(own, how):
    place = f"{own.user}/{{library}}" if how == "all of its folder" else own.private.parent
    settings = own.root / "docindex.toml"
    assert own.run("index", str(place)).returncode == 0
    declared = settings.read_text()
    assert "combination" in own.run("search", "combination of the safe", "--mode", "bm25").stdout
    if how == "no table is left":
        settings.write_text(OWN)

    assert own.run("source", "remove", str(place) if how == "all of its folder" else "library/notes").returncode == 0
    settings.write_text(declared)

    assert "not trusted" in own.run("source", "list").stderr
    assert str(own.private.parent) not in own.run("source", "list").stdout
    assert "combination" not in own.run("search", "combination of the safe", "--mode", "bm25").stdout


def test_a_branch_that_was_removed_is_asked_for_again_and_others_stay_trusted(own, git):
    wanted = repository(own.user / "lib", git, "Valves.")
    (other := own.user / "other").mkdir()
    for words in ((str(wanted), "--branch", "main", "--name", "lib"), (str(wanted), "--branch", "dev"), (str(other),)):
        assert own.run("source", "add", *words).returncode == 0
    (own.root / ".env").write_text("A=1\n")
    assert own.run("trust", "--yes").returncode == 0
    declared = (own.root / "docindex.toml").read_text()

    assert own.run("source", "remove", "git/lib@dev").returncode == 0

    listed = own.run("source", "list")
    assert "not trusted" not in listed.stderr
    assert "git/lib@dev" not in listed.stdout
    assert "git/lib " in listed.stdout
    assert "library/other" in listed.stdout
    (own.root / "docindex.toml").write_text(declared)
    assert "git/lib" not in own.run("source", "list").stdout
    assert "library/other" in own.run("source", "list").stdout
