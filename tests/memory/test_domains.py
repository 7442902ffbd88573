"""Domains: names and homes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.core.errors import DomainError
from docindex_dagster.core.layout import Layout
from docindex_dagster.memory import domains
from docindex_dagster.memory.log import open_log
from docindex_dagster.memory.message import compose


@pytest.mark.parametrize(
    "key", ["memory/main", "project/acme.web_2", "session/0a-1", "memory/.x", "memory/" + "a" * 64]
)
def test_keys(key):
    assert domains.check(key) == key


@pytest.mark.parametrize(
    "key",
    [
        *("", "memory", "memory/", "/main", "library/main", "memory/Main", "memory/ä", "memory/a b", "memory/a/b"),
        *("memory/.", "memory/..", "memory/...", "memory/../x", "memory/a\n", "memory/a\0", "memory/" + "a" * 65),
        *("../memory/a", " memory/a", "memory/*", "memory/a%2fb"),
    ],
)
def test_what_is_none_is_refused_in_a_line(layout, key):
    with pytest.raises(DomainError, match=r"invalid domain .*: expected memory/NAME") as refused:
        open_log(layout, key)
    assert "\n" not in str(refused.value)


@given(st.text(max_size=80))
def test_a_home_lies_in_the_folder_of_the_domains_or_nowhere(tmp_path_factory, key):
    layout = Layout(tmp_path_factory.getbasetemp() / "home")
    try:
        home = domains.home(layout, key).home
    except DomainError:
        return
    assert home.parent == layout.memory


def test_domains_have_homes_of_their_own(layout):
    keys = ["memory/a", "memory/b", "project/a", "session/a"]

    assert len({domains.home(layout, key).home for key in keys}) == 4


def test_those_with_a_log_are_listed_in_order(layout, tmp_path):
    assert domains.domains(layout) == []
    for key in ("session/1", "memory/main", "project/acme"):
        open_log(layout, key).append([compose(key, "s", "hello")])
    (layout.memory / "notes.txt").write_text("")
    (layout.memory / "memory%2FUPPER").mkdir()
    (layout.memory / "memory%2Fempty").mkdir()
    (layout.memory / "memory%2Flinked").symlink_to(layout.domain("memory/main").home)

    assert domains.domains(layout) == ["memory/main", "project/acme", "session/1"]
