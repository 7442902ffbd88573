"""Small file systems in memory, to fill. Making one takes root, or a namespace in which a user is root."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_KIB = 1 << 10


@contextmanager
def mounted(folder: Path, size: int) -> Iterator[Path]:
    """An empty file system of so many bytes, in a new folder below this one."""
    disk = folder / "disk"
    disk.mkdir()
    options = ("-t", "tmpfs", "-o", f"size={size}")
    if subprocess.run(["mount", *options, "docindex", disk], check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here: that takes root, or a namespace of one's own")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)


def leave_free(disk: Path, kib: int) -> None:
    """Fill the disk up to so much."""
    filler = disk / "filler"
    filler.unlink(missing_ok=True)
    state = os.statvfs(disk)
    filler.write_bytes(bytes(state.f_bavail * state.f_frsize - kib * _KIB))
