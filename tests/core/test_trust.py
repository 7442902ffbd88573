"""Trust: what a user grants to a project, where grants are stored, and whose folders docindex accepts."""

import json
import os
import stat
import threading

import pytest

from docindex_dagster.core import git_folders, trust
from docindex_dagster.core.errors import LinkError, OwnershipError, SettingsError
from docindex_dagster.core.git_folders import is_tracked
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import link_privilege, load_settings
from docindex_dagster.core.trust import Privilege, check_owner, grant, hidden_name, revoke, trust_in
from docindex_dagster.sources import config_edits
from docindex_dagster.sources.initial_config import write_first

OTHER = 54_321  # an unassigned user ID
ASKED = Privilege.of("embedding.base_url", "https://x.example/v1")

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")


@pytest.fixture(autouse=True)
def _untrusting(monkeypatch, tmp_path_factory):
    monkeypatch.delenv("DOCINDEX_TRUST")
    monkeypatch.delenv("DOCINDEX_HOME", raising=False)
    user = tmp_path_factory.mktemp("user")
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(user / name))


def test_what_is_granted_holds_until_it_is_revoked(tmp_path):
    assert not trust_in(tmp_path).grants(ASKED)
    grant(tmp_path, [ASKED])

    assert trust_in(tmp_path).grants(ASKED)
    assert not trust_in(tmp_path / "below").grants(ASKED)
    assert not trust_in(tmp_path).grants(Privilege.of("embedding.base_url", "https://y.example/v1"))
    assert stat.S_IMODE(trust.store().stat().st_mode) == 0o600
    assert revoke(tmp_path)
    assert not revoke(tmp_path)
    assert not trust_in(tmp_path).grants(ASKED)


def test_a_project_is_the_same_by_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    grant(tmp_path / "link", [ASKED])

    assert trust_in(tmp_path / "real").grants(ASKED)


def test_grants_at_once_all_count(tmp_path):
    asked = [Privilege.of("source", str(number)) for number in range(12)]
    threads = [threading.Thread(target=grant, args=(tmp_path, [one])) for one in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(trust_in(tmp_path).grants(one) for one in asked)


@pytest.mark.parametrize(
    ("value", "is_trusted"),
    [
        ("1", True),
        ("true", True),
        ("0", False),
        ("", False),
        ("{here}", True),
        ("/nowhere:{here}/..", True),
        ("{here}/below", False),
        ("{here}x", False),
    ],
)
def test_the_variable_trusts_all_projects_or_those_in_its_folders(tmp_path, monkeypatch, value, is_trusted):
    monkeypatch.setenv("DOCINDEX_TRUST", value.format(here=tmp_path))

    assert trust_in(tmp_path).grants(ASKED) == is_trusted


def test_a_damaged_store_is_an_error_and_grants_nothing(tmp_path):
    trust.store().parent.mkdir(parents=True)
    trust.store().write_text("[1, 2")

    with pytest.raises(SettingsError, match="is damaged"):
        trust_in(tmp_path)


def test_a_home_lies_where_only_its_user_knows(tmp_path, monkeypatch):
    home = load_settings(tmp_path).home

    assert home.parent == tmp_path / ".docindex"
    assert len(home.name) == 32
    assert load_settings(tmp_path).home == home
    assert stat.S_IMODE(trust.store().stat().st_mode) == 0o600
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another user"))
    assert load_settings(tmp_path).home != home


def test_a_home_differs_for_a_copy_of_the_project(tmp_path):
    (root := tmp_path / "project").mkdir()
    home = load_settings(root).home
    root.rename(tmp_path / "aside")
    root.mkdir()

    assert load_settings(root).home.parent == home.parent
    assert load_settings(root).home != home
    assert load_settings(tmp_path / "aside").home.name != home.name


def test_several_processes_that_begin_at_once_share_a_secret(tmp_path):
    names = set[str | None]()
    threads = [threading.Thread(target=lambda: names.add(hidden_name(tmp_path, make=True))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(names) == 1


def test_full_trust_uses_the_plain_home_unless_there_is_a_hidden_one(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCINDEX_TRUST", "1")
    assert load_settings(tmp_path).home == tmp_path / ".docindex"
    assert not trust.store().exists()
    monkeypatch.delenv("DOCINDEX_TRUST")
    hidden = load_settings(tmp_path).home
    monkeypatch.setenv("DOCINDEX_TRUST", "1")

    assert load_settings(tmp_path).home == tmp_path / ".docindex"
    Layout(hidden).prepare()
    assert load_settings(tmp_path).home == hidden


@pytest.mark.parametrize("place", ["index", "{here}/project/index", "{here}/link/index", "../project/index"])
def test_a_home_inside_the_project_is_hidden_wherever_it_is(tmp_path, monkeypatch, place):
    (root := tmp_path / "project").mkdir()
    (tmp_path / "link").symlink_to("project")
    monkeypatch.setenv("DOCINDEX_HOME", place.format(here=tmp_path))

    assert load_settings(root).home.name == hidden_name(root, make=False)


def test_a_process_that_gets_the_home_from_another_one_keeps_it(tmp_path, monkeypatch):
    home = load_settings(tmp_path).home
    monkeypatch.setenv("DOCINDEX_HOME", str(home))

    assert load_settings(tmp_path).home == home


def test_a_link_in_the_place_of_a_home_is_not_followed(tmp_path):
    (root := tmp_path / "project").mkdir()
    home = load_settings(root).home
    home.parent.mkdir()
    home.symlink_to(tmp_path)

    with pytest.raises(LinkError):
        load_settings(root)


def test_a_home_keeps_itself_out_of_git_and_from_other_users(tmp_path, git):
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text("!.docindex\n")
    home = load_settings(tmp_path).home
    Layout(home).prepare()
    (home / ".gitignore").write_text("!*\n")
    Layout(home).prepare()
    (home / "catalog.json").touch()

    assert git(tmp_path, "status", "--porcelain") == "?? .gitignore\n"
    assert stat.S_IMODE(home.parent.stat().st_mode) == stat.S_IMODE(home.stat().st_mode) == 0o700


def test_without_a_place_for_the_secret_there_is_no_home_in_the_project(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))

    with pytest.raises(SettingsError, match=r"^cannot write "):
        load_settings(tmp_path)
    monkeypatch.setenv("DOCINDEX_HOME", str(tmp_path.with_name("elsewhere")))
    load_settings(tmp_path)


@needs_root
@pytest.mark.parametrize("has", ["plain home", "hidden home", "no home", "home that git tracks"])
def test_the_home_of_a_trusted_owner_is_found(tmp_path, git, has):
    (root := tmp_path / "project").mkdir()
    (home := root / ".docindex").mkdir()
    hidden = [home / (letter * 32) for letter in ("abcd" if has == "hidden home" else "")]
    for number, folder in enumerate(hidden):
        folder.mkdir()
        os.utime(folder, (number, number))
    (home / ("e" * 32)).mkdir()  # owned by this user
    if has == "home that git tracks":
        (home / "catalog.json").touch()
        git(root, "init", "-q")
        git(root, "add", "-f", ".docindex")
    theirs = {"hidden home": [root, *hidden[:3]], "no home": [root]}.get(has, [root, home])
    for place in theirs:
        os.chown(place, OTHER, -1)
    grant(root, [], owner=OTHER)

    own = home / str(hidden_name(root, make=True))
    expected = {"plain home": home, "hidden home": home / ("c" * 32)}.get(has, own)
    assert load_settings(root).home == expected


def test_a_home_that_the_user_chose_elsewhere_is_opened(tmp_path, monkeypatch):
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "catalog.json").write_text("{}")
    (tmp_path / "project").mkdir()
    monkeypatch.setenv("DOCINDEX_HOME", str(tmp_path / "index"))

    assert load_settings(tmp_path / "project").home == tmp_path / "index"


@pytest.mark.parametrize("options", [["--refresh"], ["--index-version", "4"], ["--split-index"]])
@pytest.mark.parametrize("hashes", ["sha1", "sha256"])
def test_git_says_what_it_tracks(tmp_path, git, options, hashes):
    home = tmp_path / "project/.docindex"
    home.mkdir(parents=True)
    git(tmp_path, "init", "--object-format", hashes)
    for name in (".dockerignore", "project/.docs", "project/a.md", "project/.docindex/x", "z.md"):
        (tmp_path / name).write_text("text\n")
    git(tmp_path, "add", ".dockerignore", "project/.docs", "project/a.md", "z.md")
    git(tmp_path, "update-index", *options)

    assert not is_tracked(home)
    git(tmp_path, "add", "--force", "project/.docindex/x")
    assert is_tracked(home)


@needs_root
@pytest.mark.parametrize("name", [".", "docindex.toml", ".docindex"])
def test_what_belongs_to_another_user_is_refused_until_that_user_is_trusted(tmp_path, name):
    (tmp_path / "docindex.toml").write_text("")
    Layout(tmp_path / ".docindex").prepare()
    os.chown(tmp_path / name, OTHER, -1)

    with pytest.raises(OwnershipError, match=f"belongs to user {OTHER}"):
        load_settings(tmp_path)
    grant(tmp_path, [], owner=OTHER)
    load_settings(tmp_path)


@pytest.mark.parametrize("target", ["../other.toml", ".git/info/attributes"])
def test_settings_that_are_a_link_are_refused_until_it_is_trusted(tmp_path, target):
    (file := tmp_path / "project/docindex.toml").parent.mkdir()
    file.symlink_to("../nowhere.toml")
    with pytest.raises(OwnershipError, match="is a symbolic link to"):
        load_settings(file.parent)
    file.unlink()
    file.symlink_to(target)
    grant(file.parent, [], owner=os.geteuid())  # grant for the settings before a pull

    with pytest.raises(OwnershipError, match="is a symbolic link to"):
        config_edits.add(file.parent, {"kind": "library", "path": "."})
    assert not file.exists()
    file.resolve().parent.mkdir(parents=True, exist_ok=True)
    file.write_text("[search]\ntop_k = 3\n")
    with pytest.raises(OwnershipError, match="is a symbolic link to"):
        load_settings(file.parent)
    grant(file.parent, [link_privilege(file)])
    assert load_settings(file.parent).search.top_k == 3


def test_a_store_that_was_removed_grants_nothing(tmp_path):
    trust.store().parent.mkdir(parents=True)
    (trust.store().parent / "projects.json").write_text(
        json.dumps({"projects": [{"root": str(tmp_path), "folders": [], "places": []}]})
    )
    (tmp_path / "docindex.toml").write_text('[embedding]\nprovider = "openai"\n')
    Layout(tmp_path / ".docindex").prepare()

    found = load_settings(tmp_path)

    assert [privilege.name for privilege in found.ignored] == ["embedding.provider"]
    assert found.home.is_relative_to(trust.cache())


def test_a_key_of_pydantic_is_not_a_setting(tmp_path):
    """The constructor of pydantic settings would read other sources if it received such an argument."""
    for key in ("_cli_parse_args", "_env_prefix", "_secrets_dir", "_build_sources", "__pydantic_self__", "nothing"):
        (tmp_path / "docindex.toml").write_text(f'{key} = ["--embedding.provider=openai"]\n')
        with pytest.raises(SettingsError, match=f"unknown setting {key}"):
            load_settings(tmp_path)


def test_a_home_that_is_a_link_needs_trust_in_where_it_leads(tmp_path):
    (root := tmp_path / "project").mkdir()
    (tmp_path / "other").mkdir()
    (root / ".docindex").symlink_to("../other")

    assert load_settings(root).home.is_relative_to(trust.cache())
    grant(root, [link_privilege(root / ".docindex")])
    assert load_settings(root).home.parent == tmp_path / "other"


def test_a_link_that_git_tracks_is_no_home(tmp_path, git):
    (tmp_path / ".docindex").symlink_to("elsewhere")
    git(tmp_path, "init")
    git(tmp_path, "add", ".docindex")

    assert is_tracked(tmp_path / ".docindex")


def test_a_git_index_that_is_a_fifo_does_not_keep_commands_waiting(tmp_path, git, monkeypatch):
    monkeypatch.setattr(git_folders, "_TIMEOUT_S", 1)
    git(tmp_path, "init")
    os.mkfifo(tmp_path / ".git" / "index")

    assert is_tracked(tmp_path / ".docindex")


def test_a_project_in_the_cache_is_trusted_only_where_docindex_writes_projects(tmp_path):
    checkout = trust.cache() / "untrusted" / "x" / "checkouts" / "git%2Fevil"
    own = trust.cache() / trust.FOLDERS / "0123"
    for folder in (checkout, own):
        folder.mkdir(parents=True)

    assert not trust_in(checkout).is_full
    assert trust_in(own).is_full
    assert not trust_in(own / "below").is_full


@needs_root
def test_a_project_below_a_folder_of_another_user_is_refused(tmp_path):
    (root := tmp_path / "theirs" / "project").mkdir(parents=True)
    (root / "docindex.toml").write_text("")
    os.chown(root.parent, OTHER, -1)

    with pytest.raises(OwnershipError, match="who could replace"):
        load_settings(root)


@needs_root
@pytest.mark.parametrize(
    "write", [lambda root: config_edits.add(root, {"kind": "library", "path": "."}), lambda root: write_first(root, "")]
)
def test_nothing_is_written_to_a_folder_of_another_user(tmp_path, write):
    os.chown(tmp_path, OTHER, -1)

    with pytest.raises(OwnershipError, match="belongs to"):
        write(tmp_path)
    assert not list(tmp_path.iterdir())


@needs_root
def test_a_project_above_is_refused_as_well(tmp_path, monkeypatch):
    (tmp_path / "docindex.toml").write_text("")
    os.chown(tmp_path / "docindex.toml", OTHER, -1)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    monkeypatch.setenv("DOCINDEX_CEILING_DIRECTORIES", str(tmp_path.parent))

    with pytest.raises(OwnershipError, match="docindex trust"):
        load_settings()


@needs_root
def test_the_caches_of_another_user_are_refused(tmp_path):
    trust.cache().mkdir(parents=True)
    os.chown(trust.cache(), OTHER, -1)

    with pytest.raises(OwnershipError, match="belongs to"):
        load_settings(tmp_path)


def test_a_folder_that_every_user_may_write_is_refused_but_for_one_with_the_sticky_bit(tmp_path):
    (folder := tmp_path / "open" / "project").mkdir(parents=True)
    (folder / "docindex.toml").write_text("")
    folder.parent.chmod(0o1777)
    load_settings(folder)
    folder.parent.chmod(0o777)

    with pytest.raises(OwnershipError, match="is world-writable"):
        load_settings(folder)


@needs_root
def test_sudo_works_in_the_folders_of_its_caller(tmp_path, monkeypatch):
    os.chown(tmp_path, OTHER, -1)
    with pytest.raises(OwnershipError):
        check_owner(tmp_path)
    monkeypatch.setenv("SUDO_UID", str(OTHER))

    check_owner(tmp_path)
