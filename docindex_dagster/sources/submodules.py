"""The submodules of a checkout: fetched where that is safe and works, else noted with the reason."""

import os
from collections.abc import Callable
from pathlib import Path

from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.files import replacing
from docindex_dagster.core.git_folders import git_folder
from docindex_dagster.sources import transfer
from docindex_dagster.sources.paths import read_regular

_NOTE = "docindex-submodules"
_LONGEST_NOTE = 1 << 20  # bytes
_GITLINK = b"160000 "
# A path on this machine, which any author may write into a .gitmodules, is never read; no other repository's is needed.
_OPTIONS = ("-c", "protocol.file.allow=never")
_UPDATE = ("update", "--quiet", "--init", "--recursive", "--force", "--depth=1")


def update(checkout: Path, report: Callable[[str], None]) -> None:
    """Fetch the submodules of a checkout at the commits that it names; one that cannot be fetched is reported."""
    paths = _paths(checkout)
    if paths:
        transfer.attempt(checkout, "submodule", "sync", "--quiet", "--recursive")
    failures: dict[bytes, str] = {}
    for path in paths:
        name = os.fsdecode(path)
        arguments = (*_OPTIONS, "submodule", *_UPDATE, "--", path)
        try:
            transfer.run(checkout, *arguments, purpose=f"fetch submodule {name}", transports=transfer.NETWORK)
        except SourceError as error:
            failures[path] = " ".join(str(error).split())
            report(failures[path])
    with replacing(git_folder(checkout) / _NOTE) as temporary:
        temporary.write_bytes(b"".join(b"%b\0%b\0" % (path, reason.encode()) for path, reason in failures.items()))


def failures_of(root: bytes) -> dict[bytes, str]:
    """Why submodules of a checkout, by path, could not be fetched; empty for other work trees."""
    try:
        fields = read_regular(git_folder(Path(os.fsdecode(root))) / _NOTE, _LONGEST_NOTE).split(b"\0")
    except OSError:
        return {}
    return {path: reason.decode("utf-8", "replace") for path, reason in zip(fields[0::2], fields[1::2], strict=False)}


def _paths(checkout: Path) -> list[bytes]:
    listed = transfer.run(checkout, "ls-files", "-z", "--stage", purpose=f"read {checkout}").split(b"\0")
    return [line.partition(b"\t")[2] for line in listed if line.startswith(_GITLINK)]
