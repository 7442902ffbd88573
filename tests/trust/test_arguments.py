"""File names that look like options. A checkout chooses them, and shells insert them for `*`."""

import pytest


def test_a_file_of_the_name_of_an_option_grants_nothing(hostile):
    (hostile.root / "--trust").touch()

    done = hostile.run("index", *sorted(file.name for file in hostile.root.iterdir()))

    assert done.returncode == 1
    assert "to refer to the file, write ./--trust" in " ".join(done.stderr.split())
    hostile.check()


def test_only_before_the_command_trust_counts(hostile):
    for words in (("index", "--trust"), ("search", "pump", "--trust"), ("search", "pump", "--project=x")):
        done = hostile.run(*words)

        assert done.returncode == 2
        assert "put it before the command" in " ".join(done.stderr.replace("│", " ").split())
    hostile.check()


@pytest.mark.parametrize("name", ["--yes", "-y", "--open=vi", "--project=notes", "--debug", "-a;touch x"])
def test_no_command_takes_the_name_of_a_file_for_an_option(hostile, name):
    (hostile.root / name).symlink_to("nowhere")

    for words in (("search", "pump", name), ("agents", "add", name), (name, "status")):
        done = hostile.run(*words)

        assert done.returncode == 1
        assert "is the name of a file in this folder" in done.stderr
    assert hostile.run("why", "--", name).returncode == hostile.run("why", f"./{name}").returncode == 0
    hostile.check()


def test_a_folder_named_like_a_home_is_the_folder(hostile, tmp_path, monkeypatch):
    home = tmp_path / "someone"
    (home / "Documents").mkdir(parents=True)
    (home / "Documents" / "diary.md").write_text("# Diary\n\nMarmots.\n")
    monkeypatch.setenv("HOME", str(home))
    named = hostile.root / "~" / "Documents"
    named.mkdir(parents=True)
    (named / "page.md").write_text("# Page\n\nMarmots whistle.\n")

    found = hostile.run("search", "marmots", "~/Documents")

    assert "page.md" in found.stdout
    assert "diary.md" not in found.stdout


@pytest.mark.parametrize("words", [("index",), ("source", "add")])
def test_a_folder_named_like_a_placeholder_stands_for_no_other_folder(hostile, words):
    (hostile.user / "{library}").mkdir()
    (project := hostile.user / "project").mkdir()

    done = hostile.run(*words, "../{library}", cwd=project)

    hostile.check()
    assert done.returncode == 1
    assert "stands for each folder" in " ".join(done.stderr.split())


def test_a_project_named_like_a_placeholder_needs_no_trust(hostile):
    (project := hostile.user / "{library}").mkdir()
    (project / "page.md").write_text("# Valves\n")

    done = hostile.run("index", ".", cwd=project)

    assert done.returncode == 0, done.stderr
    hostile.check()


def test_a_link_named_like_a_url_is_not_cloned(hostile):
    (hostile.root / "git@example.invalid:repo").symlink_to("nowhere")

    refused = hostile.run("index", "git@example.invalid:repo")

    assert refused.returncode == 1
    assert "clone" not in refused.stderr
    assert "example.invalid" not in (hostile.root / "docindex.toml").read_text()


@pytest.mark.parametrize("words", [("--", "trust"), ("source", "--", "remove"), ("--project", ".", "--", "trust")])
def test_two_dashes_before_the_command_let_no_name_of_a_file_be_an_option(hostile, words):
    (hostile.root / "--yes").touch()

    done = hostile.run(*words, "--yes")

    assert done.returncode == 2
    assert "'--' after the" in " ".join(done.stderr.replace("│", " ").split())
    assert "not trusted" in hostile.run("status").stderr
