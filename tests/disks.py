"""Small in-memory file systems for disk-full tests. Mounting them requires root or a user namespace."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_KIB = 1 << 10


@contextmanager
def mounted(folder: Path, size: int) -> Iterator[Path]:
    """Mount an empty file system of `size` bytes in a new folder below `folder`."""
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
    """Fill the disk until `kib` KiB are free."""
    filler = disk / "filler"
    filler.unlink(missing_ok=True)
    state = os.statvfs(disk)
    filler.write_bytes(bytes(state.f_bavail * state.f_frsize - kib * _KIB))
