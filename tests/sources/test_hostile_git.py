"""Hostile repositories: docindex runs none of their programs and reads nothing outside them.

Each test sets a trap: a program that creates a file, or a path that links to a secret.
"""

import os
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from docindex_dagster.core.errors import SourceError
from docindex_dagster.sources import git
from docindex_dagster.sources.changes import fingerprint
from docindex_dagster.sources.commits import read_commits, read_history
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.explanation import why
from docindex_dagster.sources.history import read_statistics
from docindex_dagster.sources.staleness import find_edits
from tests.sources.conftest import LONG_AGO_NS, Tree, new_repository, rows
from tests.sources.remotes import Followed

LATER_NS = LONG_AGO_NS + 3_600_000_000_000
SECRET = "the secret of another folder"


class Trap:
    """A program that creates a file when it runs."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "trap"
        self._sprung = folder / "sprung"
        self.program.write_text(f"#!/bin/sh\ntouch {self._sprung}\ncat\n")
        self.program.chmod(0o755)

    def __str__(self) -> str:
        return str(self.program)

    @property
    def is_sprung(self) -> bool:
        return self._sprung.exists()


@pytest.fixture
def trap(tmp_path) -> Trap:
    return Trap(tmp_path)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Another user's repository, whose log and files are private."""
    tree = new_repository(tmp_path / "private")
    tree.write("secret.md", SECRET)
    tree.commit(SECRET)
    return tree.root


def look_at(tree: Tree, **settings) -> str:
    """Run every docindex operation on a working tree and return everything it saw as one text."""
    source = tree.source(**settings)
    fingerprint(source)
    table = discover(source, discover(source))
    head = (table.schema.metadata or {}).get(b"docindex.head")
    name = head.decode() if head else None
    seen = [table.to_pylist(), read_commits(source, name, None, 100).to_pylist(), read_statistics(source, name)]
    for path in ("a.md", "missing.md"):
        try:
            seen.append(why(source, Path(path)))
        except SourceError:
            seen.append(None)
    return repr(seen)


def prepared(tree: Tree) -> Tree:
    """Create two commits and a file that git must compare by content because its timestamp differs."""
    tree.write(".gitattributes", "*.md filter=evil diff=evil\n*.txt filter=evil merge=evil\n")
    tree.write("a.md", "one\n")
    tree.write("b.txt", "one\n")
    tree.commit()
    tree.write("a.md", "another\n", mtime_ns=LATER_NS)
    tree.commit()
    tree.write("b.txt", "two\n", mtime_ns=LATER_NS)
    return tree


SETTINGS = (
    *("filter.evil.clean", "filter.evil.smudge", "filter.evil.process"),
    *("diff.evil.textconv", "diff.evil.command", "diff.external", "merge.evil.driver"),
    *("core.fsmonitor", "core.pager", "core.editor", "core.askPass", "core.sshCommand", "core.gitProxy"),
    *("core.alternateRefsCommand", "credential.helper", "gpg.program", "gpg.ssh.program", "interactive.diffFilter"),
    *("uploadpack.packObjectsHook", "sequence.editor", "trailer.evil.command", "pager.log", "pager.status"),
    *("alias.status", "alias.log", "alias.ls-files", "alias.rev-parse", "submodule.sub.update", "remote.origin.vcs"),
)


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_program_that_a_repository_names_is_run(repository, trap, setting):
    prepared(repository)
    repository.git("config", setting, f"!{trap}" if setting.startswith(("alias", "submodule")) else str(trap))
    repository.git("config", "filter.evil.required", "true")
    repository.git("config", "log.showSignature", "true")
    repository.git("config", "status.submoduleSummary", "true")

    look_at(repository)

    assert not trap.is_sprung


@pytest.mark.parametrize("where", ["include", "includeIf", "worktree", "other attributes"])
def test_nor_where_the_setting_is_hidden(repository, trap, where, tmp_path):
    prepared(repository)
    hidden = repository.root / ".git" / "hidden"
    hidden.write_text(f'[filter "evil"]\n\tclean = {trap}\n\tprocess = {trap}\n')
    if where == "worktree":
        repository.git("config", "extensions.worktreeConfig", "true")
        shutil.move(hidden, repository.root / ".git" / "config.worktree")
    elif where == "includeIf":
        repository.git("config", f"includeIf.gitdir:{tmp_path}/.path", "hidden")
    else:
        repository.git("config", "include.path", "hidden")
    if where == "other attributes":
        (repository.root / ".gitattributes").write_text("")
        (repository.root / ".git" / "info" / "attributes").write_text("* filter=evil\n")

    look_at(repository)

    assert not trap.is_sprung


def test_a_filter_whose_name_could_hide_it_is_refused(repository, trap):
    repository.write(".gitattributes", "*.md filter=a=b\n")
    repository.write("a.md")
    repository.commit()
    repository.git("config", "filter.a=b.clean", str(trap))
    repository.write("a.md", "other\n", mtime_ns=LATER_NS)

    with pytest.raises(SourceError, match="git filter with '=' in its name"):
        look_at(repository)

    assert not trap.is_sprung


def test_filters_of_the_user_stay_in_use(repository, monkeypatch, tmp_path):
    prepared(repository)
    user = tmp_path / "gitconfig"
    user.write_text('[filter "evil"]\n\tclean = "tr a-z A-Z"\n')
    repository.git("config", "filter.evil.clean", "false")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(user))
    repository.write(".gitattributes", "*.txt filter=evil\n", mtime_ns=LATER_NS)
    repository.write("b.txt", "ONE\n", mtime_ns=LATER_NS)
    repository.commit()
    repository.write("b.txt", "one\n", mtime_ns=LATER_NS * 2)  # the filter turns this into the committed content

    assert not repository.discover()["b.txt"]["is_uncommitted"]


@pytest.mark.parametrize(
    "setting",
    [
        ("lfs.extension.evil.clean", "{}"),
        ("lfs.Extension.evil.clean", "{}"),
        ("lfs.storage", "{}"),
        ("lfs.extension.evil.clean={} #.access", "basic"),
        ("other.name", "1\nlfs.extension.evil.clean={}"),
    ],
)
def test_git_lfs_of_the_user_obeys_no_setting_of_a_repository(repository, trap, monkeypatch, tmp_path, setting):
    prepared(repository)
    user, program = tmp_path / "gitconfig", tmp_path / "git-lfs"
    user.write_text(f'[filter "lfs"]\n\tclean = {program}\n\trequired = true\n')
    # Like git-lfs, it reads all settings line by line; older versions lowercase them.
    program.write_text(
        "#!/bin/sh\neval $(git config --list | sed -n 's/^lfs[.][a-zA-Z.]*\\(clean\\|storage\\)=//p')\ncat\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(user))
    repository.write(".gitattributes", "* filter=lfs\n")
    repository.git("config", *(part.format(trap) for part in setting))

    look_at(repository)

    assert not trap.is_sprung


def test_hooks_are_not_run(repository, trap):
    for folder in (repository.root / ".git" / "hooks", repository.root / "hooks"):
        folder.mkdir(exist_ok=True)
        for hook in (
            "post-checkout",
            "post-index-change",
            "pre-auto-gc",
            "reference-transaction",
            "fsmonitor-watchman",
        ):
            shutil.copy(trap.program, folder / hook)
    repository.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--allow-empty", "--message", "x")
    repository.git("config", "core.hooksPath", "hooks")

    look_at(repository)

    assert not trap.is_sprung


@pytest.mark.parametrize("url", ["ext::{trap} %S", "ssh://example.org/x", "{root}", "file://{root}"])
def test_objects_that_are_missing_are_not_fetched_by_a_program_of_the_repositorys_choice(repository, trap, url):
    """A partial clone's config defines where and how git fetches missing objects."""
    prepared(repository)
    blob = repository.git("rev-parse", "HEAD~:a.md")
    tree = repository.git("rev-parse", "HEAD~^{tree}")
    for lost in (blob, tree):
        (repository.root / ".git/objects" / lost[:2] / lost[2:]).unlink()
    for name, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": url.format(trap=trap, root=repository.root),
        "remote.origin.uploadpack": str(trap),
        "core.sshCommand": str(trap),
        "protocol.allow": "always",
        "protocol.ext.allow": "always",
    }.items():
        repository.git("config", name, value)

    with pytest.raises(SourceError):  # noqa: PT012 how far it gets is git's affair
        look_at(repository)
        raise SourceError

    assert not trap.is_sprung


@pytest.mark.parametrize("place", ["..", "../private", "/"])
def test_a_work_tree_that_the_settings_move_elsewhere_is_not_followed(repository, outside, place):
    repository.write("a.md")
    repository.write("secret.md", "mine\n")
    repository.commit()
    repository.git("config", "core.worktree", f"../{place}" if place.startswith(".") else place)

    found = repository.discover()

    assert {path: row["is_uncommitted"] for path, row in found.items()} == {"a.md": False, "secret.md": False}


def redirect(tree: Tree, outside: Path, how: str) -> None:
    shutil.rmtree(tree.root / ".git")
    inner = tree.root / "inner"
    match how:
        case "file" | "file with a NUL byte":
            (tree.root / ".git").write_text(f"gitdir: {outside}/.git{'' if how == 'file' else chr(0)}\n")
        case "relative file":
            (tree.root / ".git").write_text("gitdir: ../private/.git\n")
        case "link":
            (tree.root / ".git").symlink_to(outside / ".git")
        case "common folder":
            (tree.root / ".git").mkdir()
            (tree.root / ".git/commondir").write_text(f"{outside}/.git\n")
            (tree.root / ".git/HEAD").write_text("ref: refs/heads/main\n")
        case "long way to the common folder":
            (tree.root / ".git").mkdir()
            (tree.root / ".git/commondir").write_text(f"{'./' * 40_000}../../{outside.name}/.git\n")
            (tree.root / ".git/HEAD").write_text("ref: refs/heads/main\n")
        case "common folder of an inner one":
            inner.mkdir()
            (inner / "commondir").write_text(f"{outside}/.git\n")
            (inner / "gitdir").write_text(f"{tree.root}/.git\n")
            (inner / "HEAD").write_text("ref: refs/heads/main\n")
            (tree.root / ".git").write_text("gitdir: inner\n")
        case "common folder of one beside" | "common folder of one beside that is named from there":
            (beside := tree.root.with_name("beside")).mkdir()
            (beside / "commondir").write_text(f"{outside}/.git\n")
            back = f"../{tree.root.name}/.git" if how.endswith("there") else f"{tree.root}/.git"
            (beside / "gitdir").write_text(f"{back}\n")
            (beside / "HEAD").write_text("ref: refs/heads/main\n")
            (tree.root / ".git").write_text("gitdir: ../beside\n")
        case "a path that is another one to git":
            (beside := tree.root.with_name("gd")).mkdir()
            (beside / "gitdir").write_text(f"{tree.root}/.git\n")
            (beside / "HEAD").write_text("ref: refs/heads/main\n")
            (tree.root / "gd").symlink_to(outside / ".git")
            (tree.root / ".git").write_text("gitdir: /proc/self/cwd/gd\n")
        case "a bare one around an empty .git":
            (tree.root / ".git").mkdir()
            (tree.root / "commondir").write_text(f"{outside}/.git\n")
            (tree.root / "HEAD").write_text("ref: refs/heads/main\n")


WAYS = [
    *("file", "relative file", "link", "common folder", "common folder of an inner one"),
    *("common folder of one beside", "common folder of one beside that is named from there"),
    *("a path that is another one to git", "a bare one around an empty .git"),
]


@pytest.mark.parametrize("how", [*WAYS, "long way to the common folder", "file with a NUL byte"])
def test_the_repository_of_another_folder_is_not_read(repository, outside, how, monkeypatch):
    monkeypatch.chdir(repository.root.parent)
    redirect(repository, outside, how)

    problem = (
        "not the repository of this folder|does not belong to this folder|longer than|contains a NUL|"
        "cannot use bare repository"
    )
    with pytest.raises(SourceError, match=problem):
        look_at(repository)


def test_the_repository_around_a_folder_with_an_odd_name_is_not_read(outside):
    folder = outside / "a:b" / "c"
    (folder / ".git").mkdir(parents=True)

    with pytest.raises(SourceError):
        look_at(Tree(folder, "git"))


def test_a_git_source_that_a_pull_made_a_link_is_not_read(repository, outside):
    repository.write("a.md")
    repository.commit()
    source = replace(repository.source(), real=repository.root)
    head = discover(source).schema.metadata[b"docindex.head"].decode()
    repository.root.rename(repository.root.with_name("before"))
    repository.root.symlink_to(outside)

    for look in (lambda: discover(source), lambda: read_history(source, head, None, 10)):
        with pytest.raises(SourceError):
            look()


def test_work_trees_and_submodules_whose_repository_knows_them_are_read(repository, outside, tmp_path):
    Tree(outside).git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    assert Tree(tmp_path / "side", "git").indexed() == {"secret.md"}
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(outside), "sub")
    assert Tree(repository.root / "sub", "git").indexed() == {"secret.md"}


@pytest.mark.parametrize("setting", ["core.excludesFile", "core.attributesFile"])
def test_no_file_outside_is_read_as_rules(repository, tmp_path, setting):
    (tmp_path / "rules").write_text("missing.md\n")
    repository.write("missing.md")
    repository.git("config", setting, str(tmp_path / "rules"))

    assert repository.indexed() == {"missing.md"}


@pytest.mark.parametrize("setting", ["diff.orderFile", "mailmap.file"])
def test_no_file_outside_is_read_for_the_history(repository, tmp_path, setting):
    os.mkfifo(tmp_path / "file")
    repository.write("a.md")
    repository.commit()
    repository.git("config", setting, str(tmp_path / "file"))

    with git.within(5):  # opening the file would block forever
        assert "a.md" in look_at(repository)


def test_no_file_outside_is_read_as_rules_of_what_is_new(repository, tmp_path):
    (tmp_path / "rules").write_text("new.md\n")
    repository.write("a.md")
    repository.commit()
    pq.write_table(discover(repository.source()), tmp_path / "table")
    repository.write("new.md")
    repository.git("config", "core.excludesFile", str(tmp_path / "rules"))

    assert find_edits(tmp_path / "table", repository.source(), time.monotonic() + 60).new == ("new.md",)


def test_links_out_of_the_tree_are_not_followed(repository, outside):
    (repository.root / "file.md").symlink_to(outside / "secret.md")
    (repository.root / "folder").symlink_to(outside)
    (repository.root / ".docindexignore").symlink_to(outside / "secret.md")
    (repository.root / ".gitattributes").symlink_to(outside / "secret.md")
    repository.commit()

    assert repository.indexed() == set()
    assert SECRET not in look_at(repository)


def test_a_folder_that_became_a_link_is_not_followed_to_a_submodule(repository, outside):
    repository.write("vendor/x.md")
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(outside), "vendor/private")
    repository.commit()
    shutil.rmtree(repository.root / "vendor")
    (repository.root / "vendor").symlink_to(outside.parent)

    found = repository.discover(submodules=True)

    assert [path for path, row in found.items() if row["skipped_reason"] is None and "secret" in path] == []


NAMES = ("--help.md", "-rf.md", "--output=x.md", ":(top)a.md", ":!a.md", "@.md", "HEAD", "$(touch x).md", "a\nb.md")


def test_files_named_like_options_or_revisions_are_files(repository):
    for name in NAMES:
        repository.write(f"./{name}", "text\n")
    head = repository.commit()

    found = repository.discover()

    assert {row["commit"] for row in found.values()} == {head}
    assert set(found) == set(NAMES)
    for name in NAMES:
        assert why(repository.source(), repository.root / name).path == name


# Fetched repositories


def follow(tree: Tree, tmp_path: Path, ref: str | None = None, **settings) -> Followed:
    return Followed(tmp_path / "home", tree.root.as_uri(), ref, settings=settings)


def test_a_clone_runs_nothing_of_its_remote(repository, trap, tmp_path):
    prepared(repository)
    for setting in SETTINGS:
        if not setting.startswith("alias"):
            repository.git("config", setting, str(trap))
    for hook in ("post-checkout", "post-update", "pre-receive", "upload-pack", "post-index-change"):
        shutil.copy(trap.program, repository.root / ".git/hooks" / hook)

    for followed in (follow(repository, tmp_path), Followed(tmp_path / "local", str(repository.root))):
        assert set(followed.update(history=5)) == {".gitattributes", "a.md", "b.txt"}
        look_at(followed.tree)

    assert not trap.is_sprung


def test_a_path_whose_git_folder_is_anothers_is_not_cloned(repository, outside, tmp_path):
    redirect(repository, outside, "file")

    with pytest.raises(SourceError, match="is not the repository of this folder"):
        Followed(tmp_path / "home", str(repository.root), "main").update()


def test_a_path_whose_git_folder_became_anothers_is_not_mended_by_a_clone_of_that(repository, outside, tmp_path):
    repository.write("a.md", "mine\n")
    repository.commit()
    followed = Followed(tmp_path / "home", str(repository.root), "main")
    followed.update()
    redirect(repository, outside, "file")

    with pytest.raises(SourceError, match="is not the repository of this folder"):
        followed.update()

    assert followed.reports == []
    assert followed.files == {"a.md": "mine\n"}
    assert Tree(followed.layout.repository("git/up"), "git").git("ls-tree", "--name-only", "main") == "a.md"


@pytest.mark.parametrize("how", ["file", "beside"])
@pytest.mark.parametrize("end", ["", "/"])
def test_a_path_that_leads_git_to_another_repository_is_not_cloned(outside, tmp_path, how, end):
    (tmp_path / ("lib" if how == "file" else "lib.git")).write_text(f"gitdir: {outside}/.git\n")

    for number, url in enumerate((f"file://{tmp_path}/lib{end}", f"{tmp_path}/lib{end}")):
        with pytest.raises(SourceError, match="lib is not a git repository"):
            Followed(tmp_path / f"home{number}", url).update()


def test_settings_of_the_repository_around_a_home_with_an_odd_name_do_not_count(repository, trap, tmp_path):
    repository.write("a.md")
    repository.commit()
    around = new_repository(tmp_path / "project:1")
    followed = Followed(around.root / "home", repository.root.as_uri())
    followed.update()
    around.git("config", "core.sshCommand", f"{trap} </dev/null")
    around.git("config", "url.ssh://example.org/.insteadOf", "file://")
    repository.root.rename(tmp_path / "gone")

    with pytest.raises(SourceError, match="cannot fetch"):
        followed.update()

    assert not trap.is_sprung


def test_objects_that_are_links_are_not_cloned(repository, outside, tmp_path):
    repository.write("a.md")
    repository.commit()
    (repository.root / ".git/objects/secret").symlink_to(outside / "secret.md")

    with pytest.raises(SourceError, match="cannot clone"):
        Followed(tmp_path / "home", str(repository.root), "main").update()

    assert not list((tmp_path / "home").rglob("secret*"))


@pytest.mark.parametrize("ref", ["--upload-pack=trap", "-x", "HEAD", "a..b", "@{-1}", ":/message", "^main", "--all"])
def test_a_branch_named_like_an_option_or_an_expression_is_only_a_name(repository, tmp_path, ref):
    repository.write("a.md")
    repository.commit()

    with pytest.raises(SourceError, match="has no branch, tag or commit"):
        follow(repository, tmp_path, ref).update()


def test_branches_of_the_remote_with_odd_names_do_no_harm(repository, tmp_path):
    repository.write("a.md")
    head = repository.commit()
    refs = repository.root / ".git/refs"
    for name in ("heads/-x", "heads/--output=x", "heads/HEAD", "tags/main", "heads/docindex"):
        (refs / name).write_text(head + "\n")

    assert follow(repository, tmp_path).update() == {"a.md": "text\n"}


GITMODULES = '[submodule "{name}"]\n\tpath = sub\n\turl = {url}\n{more}'


def with_submodule(tree: Tree, url: str, name: str = "sub", more: str = "") -> Tree:
    tree.write("a.md")
    tree.write(".gitmodules", GITMODULES.format(name=name, url=url, more=more))
    tree.git("add", "--all")
    tree.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    tree.git("commit", "--quiet", "--message", "with a submodule")
    return tree


@pytest.mark.parametrize(
    ("url", "name", "more"),
    [
        ("{outside}", "sub", ""),
        ("file://{outside}", "sub", ""),
        ("../private", "sub", ""),
        ("./../private", "sub", ""),
        ("ext::{trap} %S", "sub", ""),
        ("ext::{trap}", "sub", "\tupdate = !{trap}\n"),
        ("--upload-pack={trap}", "sub", ""),
        ("-u{trap}", "sub", ""),
        ("ssh://-oProxyCommand={trap}/x", "sub", ""),
        ("{outside}", "../../../private", ""),
        ("{outside}", "sub", "\tupdate = !{trap}\n"),
        ("fd::17", "sub", ""),
    ],
)
def test_a_submodule_reads_no_path_and_runs_nothing(  # noqa: PLR0917
    repository, outside, trap, tmp_path, url, name, more
):
    names = {"outside": outside, "trap": trap}
    with_submodule(repository, url.format(**names), name, more.format(**names))
    followed = follow(repository, tmp_path, submodules=True)

    assert set(followed.update()) == {".gitmodules", "a.md"}

    found = rows(discover(followed.source))
    assert found["a.md"]["skipped_reason"] is None
    assert found["sub/"]["skipped_reason"].startswith("submodule: cannot fetch submodule sub: ")
    assert SECRET not in look_at(followed.tree, submodules=True)
    assert not trap.is_sprung
    assert SECRET not in repr(found)
    assert followed.reports


def test_messages_of_a_remote_cannot_steer_a_terminal(tmp_path, repository, monkeypatch):
    talker = tmp_path / "talker"
    talker.write_text("#!/bin/sh\nprintf 'ERROR: \\033]0;owned\\007 no\\n' >&2\nexit 1\n")
    talker.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(talker))

    with pytest.raises(SourceError) as caught:
        Followed(tmp_path / "home", "ssh://example.org/x").update()

    assert str(caught.value).isprintable()
    assert "owned" in str(caught.value)


def test_no_transport_but_the_allowed_ones_is_used(tmp_path, trap, monkeypatch):
    """This holds even if the user's own settings select the transport."""
    user = tmp_path / "gitconfig"
    user.write_text(f'[url "ext::{trap} "]\n\tinsteadOf = https://\n[protocol]\n\tallow = always\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(user))

    with pytest.raises(SourceError, match="transport 'ext' not allowed"):
        Followed(tmp_path / "home", "https://example.org/x").update()

    assert not trap.is_sprung


def test_the_traps_work(repository, trap):
    """Plain git triggers the first trap, which proves that the tests above can fail."""
    prepared(repository)
    repository.git("config", "filter.evil.clean", str(trap))

    subprocess.run(["git", "-C", repository.root, "status"], check=True, capture_output=True, env=os.environ)

    assert trap.is_sprung
