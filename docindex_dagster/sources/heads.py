"""Commits with the files that they changed, as one pass over git's trees gives them: no content is read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from docindex_dagster.sources import git

MOST_FILES_READ = 1000  # of a commit; a larger one brings in other people's work

_FIELDS = "/%H%x00%P%x00%an%x00%ae%x00%at%x00%ct%x00%B"
_HEADS = (
    *("diff-tree", "--stdin", "--always", "--root", "-r", "-z", "--raw", "--find-renames=100%"),
    *("--encoding=UTF-8", "--no-relative", "--ignore-submodules=dirty", f"--format={_FIELDS}"),
)


@dataclass(frozen=True, slots=True)
class Change:
    """One file of a commit, before its lines are counted."""

    status: str
    path: bytes
    renamed_from: bytes | None

    @property
    def patches(self) -> int:
        """How many patches git makes of it: a file that becomes a link is deleted and made anew."""
        return 2 if self.status == "T" else 1


@dataclass(frozen=True, slots=True)
class Head:
    """A commit without its patches."""

    fields: list[bytes]  # id, parents, author, e-mail address, authored at, committed at, message
    changes: list[Change]  # the first ones
    file_count: int

    @property
    def commit(self) -> str:
        """Its id."""
        return self.fields[0].decode()


def heads(root: bytes, commits: Sequence[str]) -> Iterator[Head]:
    """Yield commits by their ids, as git reads them; of a merge, no file.

    Raises:
        SourceError: git cannot read them.
    """
    shallow = git.run(root, "rev-parse", "--is-shallow-repository").strip() == b"true"
    # Where a shallow clone ends, a commit seems to add every file.
    options = [option for option in _HEADS if not (shallow and option == "--root")]
    records = git.records(root, *options, lines=commits)
    record = next(records, None)
    while record is not None:
        fields = [record[1:], *islice(records, _FIELDS.count("%x00"))]
        changes: list[Change] = []
        number = 0
        while (record := next(records, None)) is not None and not record.startswith(b"/"):
            status = record.rpartition(b" ")[2][:1].decode()
            paths = list(islice(records, 2 if status == "R" else 1))
            if number < MOST_FILES_READ:
                changes.append(Change(status, paths[-1], paths[0] if len(paths) > 1 else None))
            number += 1
        yield Head(fields, changes, number)
