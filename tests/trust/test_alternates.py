"""Trust in a repository that borrows objects covers the repositories that it borrows from."""

import pytest


@pytest.mark.parametrize("is_indirect", [False, True])
def test_another_repository_to_borrow_from_is_asked_for_again(own, git, is_indirect):
    for name in ("base", "secret"):
        git(own.user, "init", "--initial-branch", "main", name)
    git(own.root, "init", "--initial-branch", "main")
    (own.root / "docindex.toml").write_text('[[source]]\nkind = "git"\npath = "."\nname = "own"\n')
    (lender := own.root / "lender/info").mkdir(parents=True)
    borrowed = own.root / "lender" if is_indirect else own.user / "base/.git/objects"
    alternates = own.root / ".git/objects/info/alternates"
    alternates.write_text(f"{borrowed}\n")
    assert own.start("trust", "--yes").returncode == 0
    assert "not trusted" not in own.start("source", "list").stderr

    changed = lender / "alternates" if is_indirect else alternates
    changed.write_text(f"{own.user}/secret/.git/objects\n")

    assert f"reads {own.user}/secret/.git/objects" in own.start("source", "list").stderr.replace("\n", " ")
