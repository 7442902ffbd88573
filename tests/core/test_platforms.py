"""docindex supports Linux and macOS. On Windows it prints one line and imports nothing."""

import os
import subprocess
import sys

from docindex_dagster.core import platforms
from docindex_dagster.documents import pdf

# Simulate Windows, where these modules do not exist. Set the platform last, because the standard library reads it too.
_ON_WINDOWS = """
import sys
for name in ("fcntl", "resource", "grp", "pwd", "termios"):
    sys.modules[name] = None
import docindex_dagster
sys.platform = "win32"
"""
_COMMAND = "sys.argv = ['docindex', 'search', 'words']\nfrom docindex_dagster.cli.__main__ import command\ncommand()\n"


def python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_on_windows_a_command_says_what_to_use_in_one_line():
    ended = python(_ON_WINDOWS + _COMMAND)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("error: docindex does not run natively on Windows yet; use it in WSL")
    assert ended.stderr.count("\n") == 1


def test_on_windows_a_program_gets_the_same_words():
    ended = python(f"{_ON_WINDOWS}from docindex_dagster.core import locks\n")
    assert ended.stderr.split("\n")[-2].startswith("ImportError: docindex does not run natively on Windows yet")


def test_where_names_of_files_are_not_in_utf_8_a_command_says_how_they_become_so():
    ascii_alone = {**os.environ, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    command = [sys.executable, "-m", "docindex_dagster.cli", "version"]
    ended = subprocess.run(command, env=ascii_alone, capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stdout) == (1, "")
    assert "set PYTHONUTF8=1" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_where_the_system_does_not_say_which_processors_may_be_used_all_are_counted(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    assert platforms.processors() == os.cpu_count()


def test_a_file_is_converted_where_the_system_says_nothing_of_processes(monkeypatch, tmp_path):
    monkeypatch.setattr(pdf, "_STATUS", tmp_path / "status")
    with pdf._limited_memory(1):
        assert len(bytearray(1 << 20)) == 1 << 20
