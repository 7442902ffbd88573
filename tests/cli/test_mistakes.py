"""User mistakes are explained in one or two lines."""

from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("search", "pump"), 1, "no project found"),
        (("index",), 1, "no sources yet"),
        (("index", "nowhere"), 1, "source 'nowhere' not found"),
        (("index", "no/where"), 1, "no/where not found"),
        (("index", "manual/guide.md"), 1, "is not in a source: index its folder with"),
        (("index", "ftp://example.com/x.git"), 1, "the URL has the unsupported scheme ftp; use https://"),
        (("index", "https://ada:s3cret@example.com/x"), 1, "use git's credential helper instead"),
        (("index", "ext::sh -c x"), 1, "is not a repository URL"),
        (("source", "add", "https://example.com/x", "--kind", "library"), 1, "url requires kind = 'git'"),
        (("source", "add", "manual", "--kind", "git"), 1, "not the root of a git work tree"),
        (("source", "add", "manual", "--kind", "svn"), 2, "svn"),
        (("source", "add", "~nobody-of-this-name/x"), 1, "home folder"),
        (("index", "git/typo"), 1, "source 'git/typo' not found"),
        (("ui", "--port", "70000"), 2, "--port"),
        (("source", "add", "nowhere"), 1, "nowhere not found"),
        (("source", "remove", "raw/{library}"), 1, "docindex.toml has no path = 'raw/{library}'"),
        (("index",), 1, "add one with `docindex index PATH`"),
        (("source", "use", "x"), 1, "add one with `docindex index PATH`"),
        (("why", "/etc/hostname"), 1, "is not in any source"),
        (("search", "pump", "--mode", "psychic"), 2, "psychic"),
        (("search", "pump", "--top-k", "0"), 2, "--top-k"),
        (("index", "manual/guide.md", "--full"), 2, "--full is for entire sources; manual/guide.md is a file"),
        (("index", "manual", "--full", "--verify"), 2, "pass --full or --verify, not both"),
    ],
)
def test_mistakes_are_explained_in_a_line_or_two(run, arguments, code, message):
    output = run(*arguments)

    assert output.code == code
    assert message in " ".join(output.err.split())
    assert "Traceback" not in output.err


def test_a_wrong_setting_names_its_file_and_key(run):
    Path("docindex.toml").write_text("[search]\ntop_k = 'many'\n")

    output = run("status")

    assert output.code == 1
    assert "docindex.toml: search.top_k" in output.err


@pytest.mark.parametrize("option", ["--full", "--verify"])
def test_a_file_with_an_option_for_whole_sources_is_refused_before_anything_is_declared(run, option):
    output = run("index", "manual", "manual/guide.md", option)

    assert output.code == 2
    assert not Path("docindex.toml").exists()


def test_so_is_a_file_that_was_indexed_and_is_gone(run_indexed):
    Path("manual/guide.md").unlink()

    output = run_indexed("index", "manual/guide.md", "--verify")

    assert output.code == 2
    assert "--verify is for entire sources" in " ".join(output.err.split())
    assert run_indexed("search", "well", "--mode", "bm25").out


@pytest.mark.parametrize("text", ["not: [yaml", "no_such_key: 1\n"])
def test_a_wrong_dagster_file_is_a_line(run, text):
    Path("dagster.yaml").write_text(text)

    output = run("index", "manual", "--run")

    assert output.code == 1
    assert "dagster.yaml" in output.err.splitlines()[-1]
    assert "Traceback" not in output.err


@pytest.mark.parametrize("command", [("callers",), ("neighbors",), ("export", "--around")])
def test_a_symbol_with_bytes_that_are_no_text_is_reported_in_a_line(run_indexed, command):
    answer = run_indexed("graph", *command, "x\udcff")

    assert answer.code == 1
    assert "'x\ufffd' not found in the graph" in answer.err


def test_bytes_that_are_no_text_are_no_question_mark(run_indexed):
    assert "no matches" in run_indexed("search", "\udcff", "--mode", "literal").err
    assert run_indexed("search", "pump", "--path", "gu\udcffde.md").code == 1


def test_a_context_larger_than_any_prompt_is_refused(run_indexed):
    assert run_indexed("search", "pump", "--context", "100000000000").code == 2
    assert run_indexed("search", "pump", "--context", "1000000").code == 0


def test_a_long_argument_is_not_repeated_whole(run_indexed):
    result = run_indexed("graph", "callers", "x" * 100_000)

    assert result.code == 1
    assert "symbol should have at most 4096 characters" in result.err.replace("\n", " ")
    assert len(result.err) < 5000


@pytest.mark.parametrize(
    "arguments",
    [
        ("{}",),
        ("search", "--{}", "pump"),
        ("search", "pump", "--mode", "{}"),
        ("source", "add", "manual", "--kind", "{}"),
    ],
    ids=["a command", "an option", "a value", "a value of a subcommand"],
)
def test_an_error_of_usage_shows_the_ends_of_a_long_argument_in_characters_that_can_be_seen(run, arguments):
    result = run(*(word.format("\u202e" + "x" * 100_000) for word in arguments))

    assert result.code == 2
    assert "Usage: docindex" in result.err
    assert "xxx" in result.err
    assert len(result.err) < 10_000
    assert "\u202e" not in result.err


def test_the_line_that_says_what_is_indexed_shows_the_ends_of_a_long_argument(run):
    greeting = run("index", "x" * 100_000).err.splitlines()[0]

    assert greeting.startswith("docindex: indexing xxx")
    assert len(greeting) < 1000


def test_a_path_that_no_file_has_is_reported_and_one_that_files_have_is_not(run_indexed):
    found = run_indexed("search", "pump", "--path", "src/nowhere")

    assert found.code == 1
    assert "no indexed file has the path 'src/nowhere'" in " ".join(found.err.split())
    assert run_indexed("search", "nothing-of-the-kind", "--mode", "literal", "--path", "pump.py").err == "no matches\n"
