"""Real bash, zsh and fish complete commands, options, sources, projects and topics with their scripts."""

import os
import pty
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

pytestmark = pytest.mark.dist
_LONGEST_S = 60
CASES = {
    "a command": ("docindex simi", "similar"),
    "a command of a group": ("docindex source rem", "remove"),
    "an option": ("docindex search --gran", "--granularity"),
    "a source": ("docindex search words --source git/", "git/shop"),
    "a project": ("docindex project forget ware", "warehouse"),
    "a topic": ("docindex help operat", "operations"),
}


def by_bash(script: Path, line: str, folder: Path, variables: Mapping[str, str]) -> str:
    words = line.split(" ")
    quoted = " ".join(map(shlex.quote, words))
    program = f"source {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _docindex_completion docindex; "
    return _run(["bash", "-c", program + 'printf "%s\\n" "${COMPREPLY[@]}"'], folder, variables)


def by_fish(script: Path, line: str, folder: Path, variables: Mapping[str, str]) -> str:
    return _run(["fish", "-c", f"source {script}; complete -C {shlex.quote(line)}"], folder, variables)


def by_zsh(script: Path, line: str, folder: Path, variables: Mapping[str, str]) -> str:
    """Return what an interactive zsh shows after the line and a Tab."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve(shutil.which("zsh") or "zsh", ["zsh", "-f", "-i"], {**variables, "TERM": "dumb"})
    try:
        start = f"autoload -U compinit; compinit -u -D; unsetopt zle_bracketed_paste; source {script}; echo rea''dy\n"
        os.write(terminal, start.encode())
        shown = _read_until(terminal, "ready\r\n")
        os.write(terminal, f"{line}\t".encode())
        wanted = next(word for typed, word in CASES.values() if typed == line)
        shown = _read_until(terminal, wanted)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)
    return shown


def _read_until(terminal: int, wanted: str) -> str:
    ends_at, shown = time.monotonic() + _LONGEST_S, ""
    os.set_blocking(terminal, False)
    while wanted not in shown and time.monotonic() < ends_at:
        try:
            shown += os.read(terminal, 4096).decode(errors="replace")
        except BlockingIOError:
            time.sleep(0.05)
    return shown


def _run(command: list[str], folder: Path, variables: Mapping[str, str]) -> str:
    return subprocess.run(command, cwd=folder, env=variables, check=True, capture_output=True, text=True).stdout


SHELLS: dict[str, Callable[[Path, str, Path, Mapping[str, str]], str]] = {
    "bash": by_bash,
    "fish": by_fish,
    "zsh": by_zsh,
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes(shell, installed, repository, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    project = tmp_path / "warehouse"
    project.mkdir()
    installed.run(project, "index", str(repository), "--yes")
    script = tmp_path / f"completion.{shell}"
    printed = subprocess.run(
        [installed.docindex],
        env={**installed.variables, "_DOCINDEX_COMPLETE": f"source_{shell}"},
        check=True,
        capture_output=True,
    )
    script.write_bytes(printed.stdout)
    missing = {}
    for what, (line, word) in CASES.items():
        shown = SHELLS[shell](script, line, project, installed.variables)
        if word not in shown:
            missing[what] = shown
    assert not missing
