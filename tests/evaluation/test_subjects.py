"""Questions derived from commit subjects."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.evaluation.history import is_about_tests, is_bot, question_of


@pytest.mark.parametrize(
    ("subject", "question"),
    [
        ("Sign sessions with the newest key", "Sign sessions with the newest key"),
        ("Add a timeout\nto slow queries\n\nThe body says why.", "Add a timeout to slow queries"),
        # The type is removed. The scope stays, because it names the location of the change.
        ("fix(router): match slashes before parameters (#123)", "router match slashes before parameters"),
        ("perf!: keep parsed templates in memory", "keep parsed templates in memory"),
        ("[docs] clarify the scope of loops [skip ci]", "clarify the scope of loops"),
        (":bug: repair the broken parser", "repair the broken parser"),
        ("\u2728 Draw lists of bullets", "Draw lists of bullets"),
        # Issue numbers.
        ("Close idle connections when the pool is full, closes #12", "Close idle connections when the pool is full"),
        ("Fixes #12 - parse cookies without a value", "parse cookies without a value"),
        ("Fix issue 474: a race between two locks", "a race between two locks"),
        ("MB-6616: sparse mutations of segments", "sparse mutations of segments"),
        ("UTF-8 headers of requests", "UTF-8 headers of requests"),
        ("Wrapped lines end at the right, GitHub issue 5479.", "Wrapped lines end at the right"),
        # Thanks.
        ("fix: close #12 handle empty bodies, thanks @tony", "handle empty bodies"),
        ("Ignore `SIGQUIT` when locked, from Ada Lovelace", "Ignore SIGQUIT when locked"),
        ("Remove limits from Query Builder", "Remove limits from Query Builder"),
        # Punctuation and markup.
        ("urlapi: deny hostnames with a trailing dot.", "urlapi: deny hostnames with a trailing dot"),
        ("Move `hold()` into the pool", "Move hold into the pool"),
        ("日本語 の 設定 を 読む", "日本語 の 設定 を 読む"),
        # Words that usually mark a chore but describe code here.
        ("Hold the lock until a release of memory", "Hold the lock until a release of memory"),
        ("Fix crashes when a comment is indented", "Fix crashes when a comment is indented"),
        ("Improve the merge of two segments", "Improve the merge of two segments"),
        ("Log a warning for messages that nobody reads", "Log a warning for messages that nobody reads"),
    ],
)
def test_a_subject_is_a_question_without_what_forges_and_conventions_add(subject, question):
    assert question_of(subject) == question


@pytest.mark.parametrize(
    "subject",
    [
        # Too little content.
        *("", "wip", "Fix bug", "cleanup", "#12", "of the and to in", "x" * 300, "parser " * 40),
        *("Purge the sessions that have expired while the…", "Purge the sessions that have expired..."),
        # Versions.
        *("v1.2.3", "1.2", "Release 2.0.0", "Version 3", "Bump requests from 1 to 2", "Prepare for the next release"),
        *(
            "Update the client of brokers to v2.3.8 (#9429)",
            "Start of 2.1 development",
            "Edit the release notes of May",
        ),
        # Commit types.
        *("chore(deps): update dependency vite to v5", "build: use the newest compiler everywhere"),
        *("test: increase the delay of workers", "style: order the members of classes", "[CI] Draw images of pages"),
        # Dependencies and build tools.
        *("Upgrade dependencies of the parser", "Remove the dependency on old parsers", "Let travis draw the pages"),
        # Merges and other repository housekeeping.
        *("Merge branch 'main' into next", "Merge pull request #1 from a/b", 'Revert "Add the pump"', "Initial commit"),
        *("fixup! Add a timeout to slow queries", "WIP sessions of many users", "Address review comments on sessions"),
        # Style and formatting.
        *("Fix typo in the description of sessions", "fix: typo in comments of parser", "Tidy the store of sessions"),
        *("Run black over all modules", "Fix golint warnings here", "fix lint errors of the store"),
        *("Silence unused variable warnings", "Update some comments of the store", "Fix the formatting of lists"),
        # Project documents.
        *("Update README.md", "Update templates.rst", "Update CHANGELOG for sessions", "Change the copyright of files"),
        "Update history to reflect merge of #9737 [ci skip]",
    ],
)
def test_a_phrase_that_fits_any_change_is_no_question(subject):
    assert question_of(subject) is None


@pytest.mark.parametrize(
    "author",
    [
        "dependabot[bot] <49699333+dependabot[bot]@users.noreply.github.com>",
        "renovate-bot <bot@renovateapp.com>",
        "pre-commit-ci <a@b>",
        "Release Bot <r@example.org>",
        "A project <project_12_bot@noreply.gitlab.com>",
        "GitHub <noreply@github.com>",
        "Weblate <hosted@weblate.org>",
        "Travis CI <builds@travis-ci.org>",
    ],
)
def test_programs_are_known_by_their_names(author):
    assert is_bot(author)


@pytest.mark.parametrize(
    "author",
    [
        "Ada Lovelace <ada@example.org>",
        "Abbot Botham <abbot@example.org>",
        "Ada <1234+ada@users.noreply.github.com>",
        "Travis Botham <travis@example.org>",
    ],
)
def test_people_are_none(author):
    assert not is_bot(author)


@pytest.mark.parametrize(
    "question", ["Add tests of the parser", "Let specs of lists fail", "Speed up testing of pages"]
)
def test_a_question_may_speak_of_tests(question):
    assert is_about_tests(question)
    assert not is_about_tests("Attest the latest keys by the spec")


@given(st.text(max_size=300))
def test_any_message_gives_a_question_in_one_line_or_none(message):
    found = question_of(message)

    assert found is None or (found == " ".join(found.split()) and len(found) <= 200)


@pytest.mark.parametrize(
    "part", ["fix ", "[a]", "fix #1 ", "add the ", "a/", "(, ", "Ada Ada ", "fix a b c ", ":a:", "AB-1,"]
)
def test_a_subject_made_to_be_slow_is_not(part):
    began = time.process_time()

    question_of(part * (300 // len(part)))

    assert time.process_time() - began < 0.5
