"""`docindex source remove`: it grants nothing."""

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
