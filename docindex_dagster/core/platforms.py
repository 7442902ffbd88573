"""Platform support: a clear error on unsupported systems, and workarounds for differences."""

import os
import sys

_WINDOWS = frozenset({"win32", "cygwin"})


def refusal() -> str | None:
    """Return why docindex does not run on this system; None if it does.

    Windows lacks `flock`, and opening files relative to a folder's descriptor. Stores support only UTF-8.
    """
    if sys.platform in _WINDOWS:
        return "docindex does not run natively on Windows yet; use it in WSL (`wsl --install`)"
    if (encoding := sys.getfilesystemencoding()) != "utf-8":
        return f"docindex requires UTF-8 file names, but the locale uses {encoding}; set PYTHONUTF8=1 or LANG=C.UTF-8"
    return None


def processors() -> int:
    """Return how many CPUs this process may use; all CPUs if the system does not report that (macOS)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
