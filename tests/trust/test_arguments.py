"""Names of files that look like options: a checkout chooses them, and shells give them for `*`."""

import pytest


def test_a_file_of_the_name_of_an_option_grants_nothing(hostile):
    (hostile.root / "--trust").touch()

    done = hostile.run("index", *sorted(file.name for file in hostile.root.iterdir()))

    assert done.returncode == 1
    assert "for the file, write ./--trust" in " ".join(done.stderr.split())
    hostile.check()


def test_only_before_the_command_trust_counts(hostile):
    for words in (("index", "--trust"), ("search", "pump", "--trust"), ("search", "pump", "--project=x")):
        done = hostile.run(*words)

        assert done.returncode == 2
        assert "stands before the command" in " ".join(done.stderr.replace("│", " ").split())
    hostile.check()


@pytest.mark.parametrize("name", ["--yes", "-y", "--open=vi", "--project=notes", "--debug", "-a;touch x"])
def test_no_command_takes_the_name_of_a_file_for_an_option(hostile, name):
    (hostile.root / name).symlink_to("nowhere")

    for words in (("search", "pump", name), ("agents", "add", name), (name, "status")):
        done = hostile.run(*words)

        assert done.returncode == 1
        assert "is the name of a file here" in done.stderr
    assert hostile.run("why", "--", name).returncode == hostile.run("why", f"./{name}").returncode == 0
    hostile.check()
