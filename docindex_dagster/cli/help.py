"""The `docindex help` command: the help of a command, or a page of the installed documentation."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Annotated, Any

import typer

from docindex_dagster.cli import completion
from docindex_dagster.core import installation
from docindex_dagster.core.errors import QuestionError
from docindex_dagster.core.safe_text import command
from docindex_dagster.render import console

# Words that users try, and the pages that cover them.
_ALIASES = MappingProxyType({"configuration": "settings", "sources": "choose-what-is-indexed"})
_HEADING = re.compile(r"(#{1,6}) (.*)")
_FENCE = "```"
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_LINK = re.compile(r"\[([^\]]+)\]\((?!\w+://)([^)\s]*)\)")


def help_(
    context: typer.Context,
    topic: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMMAND...|TOPIC [WORDS...]]",
            help="A command or a page. With words, only sections whose heading contains them.",
            autocompletion=completion.topics,
        ),
    ] = None,
    page: Annotated[bool, typer.Option("--page", help="Show the page if a command has the same name.")] = False,
) -> None:
    """Show the help of a command, or a page of the documentation.

    Without an argument, list the commands and pages. The pages match the
    installed version.
    """
    if not topic:
        _list(context)
        return
    command_help = None if page else _command(context, topic)
    if command_help is not None:
        console.plain(command_help)
        if len(topic) == 1 and topic[0] in installation.pages():
            console.err.print(f"see also the page: {command('docindex', 'help', '--page', topic[0])}")
    else:
        _show(topic[0], topic[1:])


def _list(context: typer.Context) -> None:
    """Print the commands and topics, one per line."""
    group: Any = context.parent.command if context.parent else context.command
    commands = {
        name: group.get_command(context, name).get_short_help_str(limit=90) for name in group.list_commands(context)
    }
    console.out.print("Commands: `docindex help COMMAND`")
    _columns(commands)
    console.out.print("\nTopics: `docindex help TOPIC [WORDS]`")
    _columns(installation.titles())


def _columns(rows: dict[str, str]) -> None:
    width = max(map(len, rows), default=0)
    for name, text in rows.items():
        console.out.print(f"  {name:{width}}  {text}", soft_wrap=True)


def _command(context: typer.Context, words: Sequence[str]) -> str | None:
    """Return the help of a command or subcommand.

    None if the first word is not a command, or if it is also a page and a further word is not a subcommand.

    Raises:
        QuestionError: The group has no such command.
    """
    at: Any = context.parent
    for position, word in enumerate(words):
        found = at.command.get_command(at, word) if hasattr(at.command, "get_command") else None
        if found is None and position and words[0] not in installation.pages():
            raise QuestionError(f"{command('docindex', *words[:position])} has no command {word!r}")
        if found is None:
            return None
        at = type(at)(found, info_name=word, parent=at)
    with console.out.capture() as printed:
        text = at.get_help()  # with rich, typer prints it and returns nothing
    return printed.get() or text


def _show(topic: str, words: Sequence[str]) -> None:
    """Print a page, or its sections that match the words.

    Raises:
        QuestionError: The page or section does not exist.
    """
    pages = installation.pages()
    file = pages.get(topic) or pages.get(_ALIASES.get(topic, ""))
    if file is None:
        raise QuestionError(f"command or topic {topic!r} not found; `docindex help` lists them")
    text = _for_terminals(file.read_text(encoding="utf-8"))
    if words:
        text = "\n".join(_sections(text, [word.lower() for word in words]))
        if not text:
            raise QuestionError(f"no section of {topic} has {' '.join(words)!r} in its heading")
    if not console.out.is_terminal:
        console.plain(text)
        return
    from rich.markdown import Markdown

    os.environ.setdefault("LESS", "-FRX")  # keep colors, and exit if the text fits on the screen
    with console.out.pager(styles=True) if not words else nullcontext():
        console.out.print(Markdown(text, hyperlinks=False))


def _for_terminals(page: str) -> str:
    """Return a page without images, with links to other pages replaced by the command that shows them."""
    return "\n".join(line if is_code else _LINK.sub(_named, _IMAGE.sub("", line)) for line, is_code in _lines(page))


def _named(link: "re.Match[str]") -> str:
    place = link[2].partition("#")[0]
    name = PurePosixPath(place).stem
    is_page = place.endswith(".md") and name in installation.pages()
    return f"{link[1]} ({command('docindex', 'help', '--page', name)})" if is_page else link[1]


def _lines(page: str) -> Iterator[tuple[str, bool]]:
    """Yield each line of a page, and whether it belongs to a code block."""
    is_code = False
    for line in page.split("\n"):
        is_fence = line.lstrip().startswith(_FENCE)
        yield line, is_code or is_fence or line.startswith("    ")
        is_code ^= is_fence


def _sections(page: str, words: Sequence[str]) -> Iterator[str]:
    """Yield the lines of all sections whose heading contains the words, with their subsections."""
    within = 0
    for line, is_code in _lines(page):
        heading = None if is_code else _HEADING.match(line)
        if heading is not None:
            level = len(heading[1])
            if not within or level <= within:
                within = level if all(word in heading[2].lower() for word in words) else 0
        if within:
            yield line
