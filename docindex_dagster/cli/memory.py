"""The `docindex memory` commands: store, recall, forget and erase messages, and manage domains."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.text import Text

from docindex_dagster.cli import completion
from docindex_dagster.cli.common import Json, output_file, utf8
from docindex_dagster.cli.options import request_options
from docindex_dagster.cli.selected_project import load_project
from docindex_dagster.core.errors import DocindexError
from docindex_dagster.core.safe_text import make_visible, on_one_line
from docindex_dagster.operations.memory import RecallRequest
from docindex_dagster.render import console

if TYPE_CHECKING:
    from collections.abc import Callable

    from docindex_dagster.core.settings import Settings
    from docindex_dagster.memory.anchors import Anchored
    from docindex_dagster.memory.memory import Memory
    from docindex_dagster.memory.results import DomainStatus, Folding, Ingested, Recalled, Receipt, Remembered
    from docindex_dagster.search.live_index import Live


app = typer.Typer(help="Store, recall and erase what agents, users and tools said.", no_args_is_help=True)
_Found = TypeVar("_Found")
_DomainOption = typer.Option(
    "--domain",
    "-d",
    metavar="KEY",
    help="A domain: memory/NAME, project/NAME or session/ID. Default: the setting memory.domain.",
    autocompletion=completion.domains,
)
Domain = Annotated[str | None, _DomainOption]
Session = Annotated[
    str | None,
    typer.Option("--session", "-s", help="Every message of a session.", callback=lambda value: value and utf8(value)),
]


def _opened(domain: str | None, *others: str, is_new: bool = False) -> "Memory":
    """Open a memory bound to a domain. A named domain must exist, unless `is_new` is set.

    Raises:
        DomainError: The key is invalid, or the domain does not exist.
    """
    from docindex_dagster.memory.memory import Memory
    from docindex_dagster.search.live_index import Live

    settings = load_project()
    if not is_new:
        for key in filter(None, (domain, *others)):  # the configured domain need not exist yet
            _check_is_there(settings, key)
    return Memory(settings, domain or settings.memory.domain, others, code=Live(settings))


@app.command()
def ingest(
    session: Annotated[str, typer.Option("--session", "-s", help="The conversation of the message.", callback=utf8)],
    text: Annotated[str, typer.Argument(help="The message. Use - to read standard input.", callback=utf8)] = "-",
    role: Annotated[
        str,
        typer.Option(
            help="user, assistant, system or tool; anything else is stored as unknown. Default with --tool: tool.",
            show_default=False,
            callback=utf8,
        ),
    ] = "",
    tool: Annotated[str, typer.Option(help="Name of the tool that produced the message.", callback=utf8)] = "",
    message_id: Annotated[
        str | None, typer.Option("--message-id", help="Your own ID. A message with the same ID is stored once.")
    ] = None,
    domain: Domain = None,
    json: Json = False,
) -> None:
    """Store a message.

    It is on disk and searchable when the command ends. A repeated message is
    stored once.
    """
    message = sys.stdin.buffer.read().decode("utf-8", "replace") if text == "-" else text
    memory = _opened(domain, is_new=True)
    found = memory.ingest(
        message, session=session, role=role or ("tool" if tool else "unknown"), tool=tool, message_id=message_id
    )
    memory.close()
    _show(found, show_ingested, json=json)


@app.command()
@request_options(RecallRequest, before="top_k", without=["query", "domains"])
def recall(
    query: Annotated[list[str], typer.Argument(help="Words, or a question.")],
    domain: Annotated[list[str] | None, _DomainOption] = None,
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, max=1000, help="Maximum number of messages.")] = 10,
    json: Json = False,
    **options: Any,
) -> None:
    """Find messages by words and meaning, and show the current state of the code they mention.

    --domain is repeatable. Results from several domains are merged by score.
    """
    from docindex_dagster.operations import memory as operation

    request = RecallRequest.parse(query=" ".join(query), **options)
    found = operation.recall(_opened(*domain) if domain else _opened(None), request, top_k)
    _show(found, show_recalled, json=json)


@app.command()
def forget(
    message: Annotated[str | None, typer.Option("--message", "-m", help="A message, by its ID.")] = None,
    session: Session = None,
    everything: Annotated[bool, typer.Option("--everything", help="Every message of the domain.")] = False,
    domain: Domain = None,
    erase: Annotated[bool, typer.Option("--erase", help="Also rewrite the files without the messages, now.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before forgetting an entire domain.")] = False,
    json: Json = False,
) -> None:
    """Hide a message, a session or a domain from all searches.

    This takes effect immediately. --erase also deletes it from all files.
    """
    if sum((message is not None, session is not None, everything)) != 1:
        raise typer.BadParameter("pass exactly one of --message ID, --session NAME and --everything")
    memory = _opened(domain)
    if everything and not yes:
        _confirm(memory.bound)
    forgotten = memory.forget(message=message, session=session, everything=everything)
    memory.close()
    if not json:
        what = on_one_line(f"{forgotten.what} {forgotten.value}".rstrip())
        console.out.print(f"{forgotten.domain}: forgot {console.count(forgotten.messages, 'message')} ({what})")
    receipt = _erase(memory.bound) if erase else None
    if json:
        console.as_json({"forgotten": forgotten, "receipt": receipt})
    elif receipt is not None:
        show_receipt(receipt)


@app.command()
def status(
    domain: Annotated[list[str] | None, _DomainOption] = None,
    json: Json = False,
) -> None:
    """Show the size of domains, pending folds and erasures, and damage."""
    keys = domain or _known(load_project())
    found = _opened(*keys).status() if keys else []
    _show(found, show_status, json=json)


@app.command()
def domains(json: Json = False) -> None:
    """List the domains."""
    _show(_known(load_project()), lambda keys: console.plain("\n".join(keys) or "no messages yet"), json=json)


@app.command()
def export(
    domain: Domain = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Output file. Default: standard output.")
    ] = None,
) -> None:
    """Print all messages of a domain as JSON lines, oldest first."""
    lines = _opened(domain).export()
    if output is None:
        sys.stdout.buffer.writelines(lines)
        sys.stdout.buffer.flush()
        return
    with output_file(output) as file:
        file.writelines(lines)


@app.command()
def fold(domain: Domain = None, json: Json = False) -> None:
    """Move messages from the log into the stores, as runs and servers do automatically."""
    found = _fold(load_project(), domain)
    for warning in found.warnings:
        console.warning(warning)
    _show(found, show_folded, json=json)


@app.command()
def erase(domain: Domain = None, json: Json = False) -> None:
    """Rewrite all files of a domain without the forgotten messages, then read them to verify it.

    Copies, backups and freed disk blocks are not affected.
    """
    _show(_erase(domain), show_receipt, json=json)


def _fold(settings: "Settings", domain: str | None, *, erase: bool = False) -> "Folding":
    from docindex_dagster.memory.fold import fold as fold_domain

    key = domain or settings.memory.domain
    _check_is_there(settings, key)
    return fold_domain(settings, key, on_wait=console.report_wait, erase=erase)


def _erase(domain: str | None) -> "Receipt":
    receipt = _fold(load_project(), domain, erase=True).receipt
    assert receipt is not None  # noqa: S101 an erasure returns a receipt
    return receipt


def _show(found: _Found, show: "Callable[[_Found], None]", *, json: bool) -> None:
    if json:
        console.as_json(found)
    else:
        show(found)


def _check_is_there(settings: "Settings", domain: str) -> None:
    """Reject the key of a domain that has no messages.

    Raises:
        DomainError: The key is invalid, or the domain does not exist.
    """
    from docindex_dagster.core.errors import DomainError
    from docindex_dagster.memory import domains as known

    if known.check(domain) not in (existing := _known(settings)):
        listed = f"the domains are {', '.join(existing)}" if existing else "there are no messages yet"
        raise DomainError(f"domain {domain} not found: {listed}; create it with `docindex memory ingest`")


def _known(settings: "Settings") -> list[str]:
    from docindex_dagster.core.layout import Layout
    from docindex_dagster.memory import domains as known

    return known.domains(Layout(settings.home))


def _confirm(domain: str) -> None:
    if not sys.stdin.isatty():
        raise DocindexError(f"this would forget all of {domain}: pass --yes to confirm")
    if not typer.confirm(f"Forget all of {domain}?", err=True):
        raise typer.Exit(1)


def memory_of(live: "Live", domain: str | None, may_read: Sequence[str] | None = None) -> "Memory | None":
    """Open the memory that a command is bound to, with the domains it may also read; None without a domain.

    Raises:
        DomainError: A key is invalid.
        BadParameter: There is a domain to read but none to write.
    """
    from docindex_dagster.memory.memory import Memory

    if domain is None:
        if may_read:
            raise typer.BadParameter("requires --domain", param_hint="--may-read")
        return None
    return Memory(live.settings, domain, may_read or (), code=live)


def show_ingested(one: "Ingested") -> None:
    """Print the result of storing a message."""
    if not one.message_id:
        console.out.print("the text is blank: nothing was stored")
        return
    again = "  already stored" if one.is_repeat else ""
    console.out.print(Text(on_one_line(f"{one.domain}  {one.session}  message {one.message_id}{again}")))
    counts = ", ".join(
        console.count(number, noun)
        for number, noun in ((one.chunks, "chunk"), (one.concepts, "concept"), (one.edges, "edge"))
    )
    found = f": {on_one_line(', '.join(one.extracted))}" if one.extracted else ""
    console.out.print(Text(f"   {counts} (extraction {one.extraction}), {one.latency_ms:.1f} ms{found}", "dim"))
    if one.problem:
        console.warning(f"cannot look up the code it mentions: {one.problem}")
    for anchor in one.anchors:
        console.out.print(
            Text(on_one_line(f"   mentions {anchor.source} {anchor.path} {anchor.name or ''}".rstrip()), "cyan")
        )


def show_recalled(found: "Recalled") -> None:
    """Print messages, best first, and the code that was requested with them."""
    for warning in found.warnings:
        console.warning(warning)
    for rank, one in enumerate(found.messages, start=1):
        _show_message(rank, one)
    if not found.messages:
        console.out.print("no matching messages")
    console.print_results(found.code, load_project().home, with_source=True)


def _show_message(rank: int, one: "Remembered") -> None:
    from docindex_dagster.render.memory_markdown import moment

    head = Text.assemble((f"{rank:2} ", "dim"), (on_one_line(f"{one.domain}  {one.session}"), "bold cyan"))
    head.append(on_one_line(f"  {one.role} {one.tool}".rstrip()), "green").append(f"  {moment(one.at)}", "dim")
    console.out.print(head)
    signals = ", ".join(name for name, _ in one.signals)
    console.out.print(Text(f"   {one.score:.4f}  message {one.message_id}  {signals}".rstrip(), "dim"))
    for line in make_visible(one.text).split("\n"):
        if line.strip():
            console.out.print(Text(f"   {line}"), soft_wrap=True)
    for anchored in one.anchors:
        _show_anchor(anchored)


def _show_anchor(one: "Anchored") -> None:
    from docindex_dagster.render.memory_markdown import current_state

    console.out.print(
        Text(on_one_line(f"   mentions {current_state(one)}"), "cyan" if one.state == "fresh" else "yellow")
    )
    if one.dependents is not None:
        console.out.print(Text(f"      dependents: {one.dependents:,}", "dim"))
    for step in one.impact:
        console.out.print(Text(on_one_line(f"      {step.subject} {step.predicate} it  {step.place}"), "dim"))


def show_status(domains: "Sequence[DomainStatus]") -> None:
    """Print the state of each domain."""
    from docindex_dagster.render.memory_markdown import MEGABYTE, moment

    if not domains:
        console.out.print("no messages yet: store one with `docindex memory ingest`, or give agents a --domain")
        return
    columns = ("domain", "messages", "sessions", "chunks", "not folded", "to erase", "MB", "last message (UTC)")
    rows = [
        (
            one.domain,
            one.messages,
            one.sessions,
            one.chunks,
            one.tail,
            one.forgotten,
            round(one.bytes / MEGABYTE, 1),
            moment(one.newest_at),
        )
        for one in domains
    ]
    console.table(columns, rows)
    for one in domains:
        for flaw in one.flaws:
            console.warning(f"{one.domain}: {flaw}")


def show_folded(one: "Folding") -> None:
    """Print the result of a fold, and of an erasure."""
    counts = f"{console.count(one.messages, 'message')} ({one.added:,} added, {one.removed:,} removed)"
    totals = f"{console.count(one.chunks, 'chunk')}, {console.count(one.edges, 'edge')}"
    console.out.print(f"{one.domain}: {counts}, {totals}; {one.seconds:.1f} s")
    if one.receipt is not None:
        show_receipt(one.receipt)


def show_receipt(one: "Receipt") -> None:
    """Print what was erased, and what was read to verify it."""
    what = console.count(len(one.forgotten), "message") if one.forgotten else "no forgotten messages"
    console.out.print(
        f"{one.domain}: erased {what}; read {console.count(one.files, 'file')} ({one.bytes:,} bytes) and found none "
        f"of their IDs or texts; {one.erased_at}"
    )
