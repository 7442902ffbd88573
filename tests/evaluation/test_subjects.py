"""What the subject of a commit asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.evaluation.subjects import is_of_program, question_of


@pytest.mark.parametrize(
    ("subject", "question"),
    [
        ("Sign sessions with the newest key", "Sign sessions with the newest key"),
        (
            "fix(router): match trailing slashes before parameters (#123)",
            "router match trailing slashes before parameters",
        ),
        ("perf!: keep parsed templates in memory", "keep parsed templates in memory"),
        ("Close idle connections when the pool is full, closes #12", "Close idle connections when the pool is full"),
        (
            "urlapi: deny hostnames with more than one trailing dot.",
            "urlapi: deny hostnames with more than one trailing dot",
        ),
        ("Add a timeout\nto slow queries\n\nThe body says why.", "Add a timeout to slow queries"),
    ],
)
def test_a_subject_is_a_question_without_what_forges_and_conventions_add(subject, question):
    assert question_of(subject) == question


@pytest.mark.parametrize(
    "subject",
    [
        *("", "wip", "Fix bug", "cleanup", "v1.2.3", "1.2", "Release 2.0.0", "Version 3", "Bump requests from 1 to 2"),
        *("Merge branch 'main' into next", "Merge pull request #1 from a/b", 'Revert "Add the pump"', "Initial commit"),
        *("chore(deps): update dependency vite to v5", "build: use the newest compiler everywhere", "Update README.md"),
        *("Fix typo in the description of sessions", "Run black over all modules", "Prepare for the next release"),
        *(
            "fixup! Add a timeout to slow queries",
            "Update the changelog for the release of May",
            "Fix golint warnings here",
        ),
        *(
            "#12",
            "of the and to in",
            "x" * 300,
            "fix: typo in comments of parser",
            "Add tests of the parser for tables",
        ),
    ],
)
def test_a_phrase_that_fits_any_change_is_no_question(subject):
    assert question_of(subject) is None


@pytest.mark.parametrize(
    ("author", "email"),
    [
        ("dependabot[bot]", "49699333+dependabot[bot]@users.noreply.github.com"),
        ("renovate-bot", "bot@renovateapp.com"),
        ("pre-commit-ci", "a@b"),
        ("Release Bot", "r@example.org"),
        ("GitHub", "noreply@github.com"),
        ("Weblate", "hosted@weblate.org"),
    ],
)
def test_programs_are_known_by_their_names(author, email):
    assert is_of_program(author, email)


@pytest.mark.parametrize(
    ("author", "email"),
    [
        ("Ada Lovelace", "ada@example.org"),
        ("Abbot Botham", "abbot@example.org"),
        ("Ada", "1234+ada@users.noreply.github.com"),
    ],
)
def test_people_are_none(author, email):
    assert not is_of_program(author, email)


@given(st.text(max_size=300))
def test_any_message_gives_a_question_in_one_line_or_none(message):
    found = question_of(message)

    assert found is None or (found == " ".join(found.split()) and len(found) <= 200)
