"""`docindex memory …`: writing messages, finding them again, forgetting them, and looking after domains."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from docindex_dagster.cli import completion, console, remembering
from docindex_dagster.cli.common import Json, output_file, utf8
from docindex_dagster.cli.options import taking
from docindex_dagster.cli.project import load_project
from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.printable import in_line
from docindex_dagster.operations.memory import RecallRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from docindex_dagster.core.settings import Settings
    from docindex_dagster.memory.memory import Memory
    from docindex_dagster.memory.results import Folding, Receipt

app = typer.Typer(
    help="What agents, their users and tools said: write it, find it again, forget it, erase it.", no_args_is_help=True
)
_Found = TypeVar("_Found")
_DomainOption = typer.Option(
    "--domain",
    "-d",
    metavar="KEY",
    help="memory/NAME, project/NAME or session/ID. Default: the setting memory.domain.",
    autocompletion=completion.domains,
)
Domain = Annotated[str | None, _DomainOption]
Session = Annotated[
    str | None, typer.Option("--session", "-s", help="All of a session.", callback=lambda given: given and utf8(given))
]


def _opened(domain: str | None, *others: str, is_new: bool = False) -> "Memory":
    """A memory bound to a domain, which has to be there if it is named, unless it may be a new one.

    Raises:
        DomainError: it is none, or is not there.
    """
    from docindex_dagster.memory.memory import Memory
    from docindex_dagster.search.live import Live

    settings = load_project()
    if not is_new:
        for key in filter(None, (domain, *others)):  # that of the settings need not be: nobody typed it
            _check_is_there(settings, key)
    return Memory(settings, domain or settings.memory.domain, others, code=Live(settings))


@app.command()
def ingest(
    session: Annotated[str, typer.Option("--session", "-s", help="The conversation it belongs to.", callback=utf8)],
    text: Annotated[str, typer.Argument(help="What was said; '-' reads standard input.", callback=utf8)] = "-",
    role: Annotated[
        str,
        typer.Option(
            help="user, assistant, system or tool; anything else becomes unknown. Default: tool, with --tool.",
            show_default=False,
            callback=utf8,
        ),
    ] = "",
    tool: Annotated[str, typer.Option(help="Which tool answered.", callback=utf8)] = "",
    message_id: Annotated[
        str | None, typer.Option("--message-id", help="An id of your own, by which it counts once.")
    ] = None,
    domain: Domain = None,
    json: Json = False,
) -> None:
    """Write a message: it is on the disk when this ends, and any process finds it. The same again counts once."""
    message = sys.stdin.buffer.read().decode("utf-8", "replace") if text == "-" else text
    memory = _opened(domain, is_new=True)
    found = memory.ingest(
        message, session=session, role=role or ("tool" if tool else "unknown"), tool=tool, message_id=message_id
    )
    memory.close()
    _show(found, remembering.show_ingested, json=json)


@app.command()
@taking(RecallRequest, before="top_k", without=["query", "domains"])
def recall(
    query: Annotated[list[str], typer.Argument(help="Words or a question.")],
    domain: Annotated[list[str] | None, _DomainOption] = None,
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, max=1000, help="How many messages at most.")] = 10,
    json: Json = False,
    **given: Any,
) -> None:
    """Find messages by words and by meaning, and say what has become of the code that they name.

    --domain may be given several times; what they hold is put together by score.
    """
    from docindex_dagster.operations import memory as operation

    request = RecallRequest.of(query=" ".join(query), **given)
    found = operation.recall(_opened(*domain) if domain else _opened(None), request, top_k)
    _show(found, remembering.show_recalled, json=json)


@app.command()
def forget(
    message: Annotated[str | None, typer.Option("--message", "-m", help="One message, by its id.")] = None,
    session: Session = None,
    everything: Annotated[bool, typer.Option("--everything", help="All of the domain.")] = False,
    domain: Domain = None,
    erase: Annotated[bool, typer.Option("--erase", help="Also rewrite the files without it, now.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before a whole domain is forgotten.")] = False,
    json: Json = False,
) -> None:
    """Hide a message, a session or a domain from every search, at once; --erase leaves no byte of it in any file."""
    if sum((message is not None, session is not None, everything)) != 1:
        raise typer.BadParameter("say what: --message ID, --session NAME or --everything")
    memory = _opened(domain)
    if everything and not yes:
        _confirm(memory.bound)
    forgotten = memory.forget(message=message, session=session, everything=everything)
    memory.close()
    if not json:
        what = in_line(f"{forgotten.what} {forgotten.value}".rstrip())
        console.out.print(f"{forgotten.domain}: forgot {console.count(forgotten.messages, 'message')} ({what})")
    receipt = _erase(memory.bound) if erase else None
    if json:
        console.as_json({"forgotten": forgotten, "receipt": receipt})
    elif receipt is not None:
        remembering.show_receipt(receipt)


@app.command()
def status(
    domain: Annotated[list[str] | None, _DomainOption] = None,
    json: Json = False,
) -> None:
    """Show how large domains are, what waits to be folded or erased, and damage; by default of all that there are."""
    keys = domain or _known(load_project())
    found = _opened(*keys).status() if keys else []
    _show(found, remembering.show_status, json=json)


@app.command()
def domains(json: Json = False) -> None:
    """List the domains that there are."""
    _show(_known(load_project()), lambda keys: console.plain("\n".join(keys) or "nothing is remembered yet"), json=json)


@app.command()
def export(
    domain: Domain = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file in place of standard output.")] = None,
) -> None:
    """Print all messages of a domain by time, a line of JSON for each, with how often it came again."""
    lines = _opened(domain).export()
    if output is None:
        sys.stdout.buffer.writelines(lines)
        sys.stdout.buffer.flush()
        return
    with output_file(output) as file:
        file.writelines(lines)


@app.command()
def fold(domain: Domain = None, json: Json = False) -> None:
    """Move what waits in the log into the stores, as runs and servers do by themselves."""
    found = _fold(load_project(), domain)
    for warning in found.warnings:
        console.warning(warning)
    _show(found, remembering.show_folded, json=json)


@app.command()
def erase(domain: Domain = None, json: Json = False) -> None:
    """Rewrite all files of a domain without what was forgotten, and read them to prove it.

    What copies, backups and the blocks of the disk hold is out of reach.
    """
    _show(_erase(domain), remembering.show_receipt, json=json)


def _fold(settings: "Settings", domain: str | None, *, erase: bool = False) -> "Folding":
    from docindex_dagster.memory.fold import fold as fold_domain

    key = domain or settings.memory.domain
    _check_is_there(settings, key)
    return fold_domain(settings, key, on_wait=console.report_wait, erase=erase)


def _erase(domain: str | None) -> "Receipt":
    receipt = _fold(load_project(), domain, erase=True).receipt
    assert receipt is not None  # noqa: S101 an erasure gives one
    return receipt


def _show(found: _Found, show: "Callable[[_Found], None]", *, json: bool) -> None:
    if json:
        console.as_json(found)
    else:
        show(found)


def _check_is_there(settings: "Settings", domain: str) -> None:
    """Refuse the key of a domain that nothing was written into.

    Raises:
        DomainError: it is no key, or there is no such domain.
    """
    from docindex_dagster.core.errors import DomainError
    from docindex_dagster.memory import domains as known

    if known.check(domain) not in (there := _known(settings)):
        listed = f"there are {', '.join(there)}" if there else "nothing is remembered yet"
        raise DomainError(f"there is no domain {domain}: {listed}; it begins with `docindex memory ingest`")


def _known(settings: "Settings") -> list[str]:
    from docindex_dagster.core.layout import Layout
    from docindex_dagster.memory import domains as known

    return known.domains(Layout(settings.home))


def _confirm(domain: str) -> None:
    if not sys.stdin.isatty():
        raise DocindexError(f"all of {domain} would be forgotten: say --yes if that is meant")
    if not typer.confirm(f"Forget all of {domain}?", err=True):
        raise typer.Exit(1)
