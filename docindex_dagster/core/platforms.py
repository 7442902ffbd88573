"""The systems that docindex runs on: what is refused on others in a line, and what one of them lacks."""

import os
import sys

_WINDOWS = frozenset({"win32", "cygwin"})


def refusal() -> str | None:
    """Why docindex does not run on this system; None where it does.

    Locks between processes are `flock`'s, and files are read beneath a folder by its descriptor: Windows has neither.
    Stores have UTF-8 alone.
    """
    if sys.platform in _WINDOWS:
        return "docindex does not run on Windows yet: use it in WSL, the Linux of Windows (`wsl --install`)"
    if (encoding := sys.getfilesystemencoding()) != "utf-8":
        return f"names of files are in {encoding} here, and docindex takes UTF-8: set PYTHONUTF8=1, or LANG=C.UTF-8"
    return None


def processors() -> int:
    """How many processors this process may use; where the system does not say that (macOS), how many there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
