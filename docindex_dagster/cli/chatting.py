"""`docindex ask --chat`: question after question, and what can be typed beside them."""

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from docindex_dagster.cli import console
from docindex_dagster.core.errors import DocindexError, QueryError
from docindex_dagster.core.printable import in_line
from docindex_dagster.sources.paths import check_way, expanded

if TYPE_CHECKING:
    from docindex_dagster.cli.asked import Asked

_PROMPT = "> "
_HELP = """\
/sources     all passages of the conversation
/show N      passage N, whole
/save FILE   the conversation as Markdown, with its sources
/new         another conversation
/quit        the end, as Ctrl-D; Ctrl-C stops an answer, or drops a line
Anything else is a question, which may refer to the one before."""


def converse(asked: "Asked", first: str) -> None:
    """Ask until the user has had enough.

    Args:
        asked: the conversation.
        first: a question to begin with; empty for none.
    """
    with suppress(ImportError):
        import readline  # noqa: F401 its import is what lets `input` edit lines
    console.err.print("/help lists what can be typed beside questions")
    line, prompt = first, _PROMPT if sys.stdin.isatty() else ""
    while True:
        if not line.strip():
            try:
                line = input(prompt)
            except KeyboardInterrupt:  # one that came a moment too late to stop an answer ends nothing
                console.err.print("\n/quit or Ctrl-D ends the chat")
            except EOFError:
                if prompt:
                    console.out.print()
                return
            continue
        if line.strip() in {"/quit", "/exit"}:
            return
        try:
            _done(asked, line.strip())
        except KeyboardInterrupt:
            console.err.print("\nstopped")
        except (DocindexError, OSError) as error:
            console.failure(str(error))
        line = ""


def _done(asked: "Asked", line: str) -> None:
    if not line.startswith("/"):
        asked.ask(line)
        return
    name, _, rest = line.partition(" ")
    commands: dict[str, Callable[[Asked, str], None]] = {
        "/help": _help,
        "/sources": _sources,
        "/show": _show,
        "/save": _save,
        "/new": _new,
    }
    if name not in commands:
        raise QueryError(f"there is no {name}; /help lists what there is")
    commands[name](asked, rest.strip())


def _help(_: "Asked", _rest: str) -> None:
    console.out.print(_HELP)


def _sources(asked: "Asked", _rest: str) -> None:
    asked.shown.passages(asked.conversation.passages.kept)


def _show(asked: "Asked", number: str) -> None:
    found = asked.conversation.passages.numbered([int(number)]) if number.isdecimal() else ()
    if not found:
        raise QueryError(f"there is no passage {number or 'without a number'}; /sources lists them")
    asked.shown.passages(found)
    console.plain(found[0].text)


def _save(asked: "Asked", name: str) -> None:
    if not name:
        raise QueryError("say where: /save FILE")
    if not asked.conversation.turns:
        raise QueryError("nothing was asked yet")
    place = expanded(name)
    check_way(place, is_output=True)
    try:
        with place.open("x", encoding="utf-8") as file:
            file.write(_as_markdown(asked))
    except FileExistsError:
        raise QueryError(f"{name} is there already: choose another name") from None
    except OSError as error:
        raise QueryError(f"{name} cannot be written: {error.strerror}") from None
    console.out.print(f"saved as {name}")


def _as_markdown(asked: "Asked") -> str:
    turns = [f"## {in_line(turn.question)}\n\n{turn.answer.strip()}\n" for turn in asked.conversation.turns]
    cited = {number for turn in asked.conversation.turns for number in turn.cited}
    sources = [
        f"{one.number}. {in_line(one.source)} `{in_line(one.path)}:{one.start_line}-{one.end_line}`"
        for one in asked.conversation.passages.numbered(cited)
    ]
    return "\n".join([*turns, *(["## Sources\n", *sources, ""] if sources else [])])


def _new(asked: "Asked", _rest: str) -> None:
    asked.begin_anew()
    console.out.print("a new conversation")
