"""URLs that are passed to git, and URLs that are rejected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.core.urls import check_url, is_url, local_path, repository_name, scrub


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/pallets/flask", "flask"),
        ("https://example.org:8443/team/service.git", "service"),
        ("http://[::1]:8080/x.git/", "x"),
        ("ssh://git@example.org:22/srv/x.git", "x"),
        ("ssh://example.org/~ada/x", "x"),
        ("git@example.org:team/x.git", "x"),
        ("ada@example.org:x", "x"),
        ("file:///srv/git/x.git", "x"),
        ("https://example.org/@scope/x@v1", "x@v1"),
    ],
)
def test_a_repository_is_named_after_the_last_part_of_its_url(url, name):
    assert is_url(url)
    assert check_url(url) == url
    assert repository_name(url) == name


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("--upload-pack=touch x", "dash"),
        ("file:///srv/a%00b", "NUL"),
        ("-u@example.org:x", "dash"),
        ("ssh://-oProxyCommand=touch/x", "host that starts with a dash"),
        ("ssh://%2DoProxyCommand=touch/x", "host that starts with a dash"),
        ("ssh://-l@example.org/x", "user that starts with a dash"),
        ("git@-oProxyCommand=x:x", "host that starts with a dash"),
        ("git@example.org:-x", "path that starts with a dash"),
        ("https://-x/y", "host that starts with a dash"),
        ("ext::sh -c touch% x", "use https"),
        ("fd::17", "use https"),
        ("file::/etc", "use https"),
        ("https::https://example.org/x", "use https"),
        ("::x", "use https"),
        ("git://example.org/x", "scheme git; use https"),
        ("ftp://example.org/x", "scheme ftp"),
        ("HTTPS://example.org/x", "scheme HTTPS"),
        ("file://example.org/x", "three slashes"),
        ("https://example.org", "no repository path"),
        ("https:///x", "no host"),
        ("https://g\N{CYRILLIC SMALL LETTER BYELORUSSIAN-UKRAINIAN I}thub.com/x", "Punycode"),
        ("git@g\N{CYRILLIC SMALL LETTER BYELORUSSIAN-UKRAINIAN I}thub.com:x", "Punycode"),
        ("https://example.org:port/x", "port"),
        ("https://example.org/x?token=1", "must end with the path"),
        ("https://example.org/x#1", "must end with the path"),
        ("https://example.org/x\ny", "control characters"),
        ("https://example.org/x\0", "control characters"),
        ("https://exa\x1b[2Jmple.org/x", "control characters"),
        ("", "control characters"),
        ("../x", "use https"),
    ],
)
def test_what_git_could_take_for_something_else_is_refused_with_the_reason(url, why):
    with pytest.raises(ValueError, match=why):
        check_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://ada:s3cret@example.org/x",
        "https://s3cret@example.org/x",
        "https://:s3cret@example.org/x",
        "https://ada:s3/cret@example.org/x",
        "ssh://ada:s3cret@example.org/x",
        "ada:s3cret@example.org:x",
        "https://example.org/x?token=s3cret",
    ],
)
def test_a_url_with_a_secret_is_refused_without_repeating_it(url):
    with pytest.raises(ValueError) as caught:
        check_url(url)

    assert "s3cret" not in str(caught.value)
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize("place", ["docs", "../docs", "/srv/docs", "raw/{library}", "C:docs", "flask@feature/x"])
def test_a_path_or_a_name_is_no_url(place):
    assert not is_url(place)


@given(st.text(st.characters(exclude_categories=["Cs", "Z", "C"], exclude_characters="/@:'\""), min_size=3))
def test_no_message_keeps_what_stands_before_the_host(secret):
    for url in (f"https://ada:{secret}@h/x", f"https://{secret}@h/x", f"https://ada:a/{secret}@h/x"):
        assert scrub(f"fatal: unable to access '{url}': no") == "fatal: unable to access 'https://h/x': no"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("fatal: 'https://u:p@ss@host/x' no", "fatal: 'https://host/x' no"),
        ("cannot reach https://host/x?private_token=abc&y=1", "cannot reach https://host/x?private_token=…&y=1"),
        ("clone of file:///srv/checkouts/git@dev", "clone of file:///srv/checkouts/git@dev"),
    ],
)
def test_secrets_of_odd_urls_are_left_out_and_paths_stay(text, shown):
    assert scrub(text) == shown


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("file:///srv/a%20b", "/srv/a b"),
        ("file:///srv/a?b#c", "/srv/a?b#c"),
        ("file:///srv/%FF", "/srv/\udcff"),
        ("/srv/a%20b", "/srv/a%20b"),
        ("https://example.org/a", None),
    ],
)
def test_the_path_in_a_url_is_the_one_that_git_reads(url, path):
    assert local_path(url) == path
