"""Ctrl-C stops the running command, even if another handler received the signal."""

import signal
import sys
from types import ModuleType

import pytest

from docindex_dagster import cli
from docindex_dagster.core import interrupts


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_whose_handler_forgets_it_is_an_interrupt_nevertheless(ending):
    before = signal.signal(ending, lambda *_: None)
    try:
        with interrupts.interrupt_check() as check:
            check()
            signal.raise_signal(ending)
            with pytest.raises(KeyboardInterrupt):
                check()
            check()  # each signal is reported once
    finally:
        signal.signal(ending, before)


def test_other_signals_are_none():
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with interrupts.interrupt_check() as check:
            signal.raise_signal(signal.SIGUSR1)
            check()
    finally:
        signal.signal(signal.SIGUSR1, before)


class _Loading(ModuleType):
    """A module that is interrupted while it loads."""

    def __getattr__(self, name: str) -> None:
        raise KeyboardInterrupt


def test_ctrl_c_while_modules_load_ends_the_command_without_a_traceback(monkeypatch):
    monkeypatch.setitem(sys.modules, "docindex_dagster.cli.app", _Loading("app"))

    with pytest.raises(SystemExit) as ended:
        cli.main()

    assert ended.value.code == 130
