import os

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from docindex_dagster.sources.paths import Root, name_to_path, path_to_name, read_beneath


@given(st.binary())
@example(b"%41%zz%\xff%4\xff41")
@example("\ud800".encode("utf-8", "surrogatepass"))
def test_any_bytes_come_back_from_their_name(path):
    name = path_to_name(path)
    assert name_to_path(name) == path
    name.encode()  # can be stored as UTF-8


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (b"docs/guide.md", "docs/guide.md"),
        ("déjà/🚀 vu.md".encode(), "déjà/🚀 vu.md"),
        (b"100% sure.md", "100% sure.md"),
        (b"a%41.md", "a%2541.md"),
        (b"caf\xe9.md", "caf%E9.md"),
        (b"two\nlines.md", "two\nlines.md"),
    ],
)
def test_a_name_escapes_only_what_would_be_ambiguous(path, name):
    assert path_to_name(path) == name


@pytest.mark.parametrize("path", [b"../secret", b"a/../../secret", b"/etc/hostname", b"a//b", b".", b"", b"a\0b"])
def test_reading_refuses_paths_that_leave_the_root(tmp_path, path):
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    with pytest.raises(OSError, match="not a path inside the source"):
        read_beneath(os.fsencode(root), path)


def test_reading_follows_no_link_in_any_component(tmp_path):
    root = tmp_path / "root"
    outside = tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    (root / "folder").symlink_to(outside)
    (root / "file.md").symlink_to(outside / "secret.md")
    for path in (b"folder/secret.md", b"file.md"):
        with pytest.raises(OSError):
            read_beneath(os.fsencode(root), path)


def test_a_root_follows_no_link_and_does_not_lead_out(tmp_path):
    (tmp_path / "root/inner").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.md").write_text("secret")
    (tmp_path / "root/link").symlink_to(tmp_path / "outside")
    (tmp_path / "way").symlink_to(tmp_path / "root")
    with pytest.raises(OSError):
        Root(os.fsencode(tmp_path / "way"))
    with Root(os.fsencode(tmp_path / "root")) as root:
        for path in (b"link/secret.md", b"../outside/secret.md", b"inner/../../outside/secret.md"):
            with pytest.raises(OSError):
                root.lstat(path)
        for folder in (b"link/", b"../outside/"):
            with pytest.raises(OSError):
                root.scan(folder)
        assert sorted(root.scan(b"")) == [(b"inner", True), (b"link", False)]


def test_a_root_stays_the_folder_that_was_opened(tmp_path):
    (tmp_path / "root/inner").mkdir(parents=True)
    (tmp_path / "root/inner/a.md").touch()
    (tmp_path / "outside/inner").mkdir(parents=True)
    (tmp_path / "outside/inner/secret.md").touch()
    with Root(os.fsencode(tmp_path / "root")) as root:
        (tmp_path / "root").rename(tmp_path / "before")
        (tmp_path / "root").symlink_to(tmp_path / "outside")
        assert root.scan(b"inner/") == [(b"a.md", False)]


def test_reading_does_not_wait_for_a_fifo(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        read_beneath(os.fsencode(tmp_path), b"pipe")


def test_reading_stops_at_the_limit(tmp_path):
    (tmp_path / "a.md").write_bytes(b"0123456789")
    assert read_beneath(os.fsencode(tmp_path), b"a.md", limit=4) == b"0123"
    assert read_beneath(os.fsencode(tmp_path), b"a.md") == b"0123456789"
