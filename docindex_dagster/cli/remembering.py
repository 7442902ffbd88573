"""Memory on the command line: opening it, and showing what it answers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from docindex_dagster.cli import console
from docindex_dagster.cli.project import load_project
from docindex_dagster.core.printable import in_line, visible

if TYPE_CHECKING:
    from docindex_dagster.memory.anchors import Anchored
    from docindex_dagster.memory.memory import Memory
    from docindex_dagster.memory.results import DomainStatus, Folding, Ingested, Recalled, Receipt, Remembered
    from docindex_dagster.search.live import Live


def memory_of(live: "Live", domain: str | None, may_read: Sequence[str] | None = None) -> "Memory | None":
    """The memory that a command is bound to, and may read beside it; none without a domain.

    Raises:
        DomainError: a key is none.
        BadParameter: there is something to read and nothing to write.
    """
    from docindex_dagster.memory.memory import Memory

    if domain is None:
        if may_read:
            raise typer.BadParameter("goes with --domain alone", param_hint="--may-read")
        return None
    return Memory(live.settings, domain, may_read or (), code=live)


def show_ingested(one: "Ingested") -> None:
    """Print what became of a message."""
    if not one.message_id:
        console.out.print("the text is blank: nothing is written")
        return
    again = "  there before" if one.is_repeat else ""
    console.out.print(Text(in_line(f"{one.domain}  {one.session}  message {one.message_id}{again}")))
    counts = ", ".join(
        console.count(number, noun)
        for number, noun in ((one.chunks, "chunk"), (one.concepts, "concept"), (one.edges, "edge"))
    )
    found = f": {in_line(', '.join(one.extracted))}" if one.extracted else ""
    console.out.print(Text(f"   {counts} (extraction {one.extraction}), {one.latency_ms:.1f} ms{found}", "dim"))
    if one.problem:
        console.warning(f"the code that it names could not be looked up: {one.problem}")
    for anchor in one.anchors:
        console.out.print(Text(in_line(f"   names {anchor.source} {anchor.path} {anchor.name or ''}".rstrip()), "cyan"))


def show_recalled(found: "Recalled") -> None:
    """Print messages, best first, and the code that was asked for with them."""
    for warning in found.warnings:
        console.warning(warning)
    for rank, one in enumerate(found.messages, start=1):
        _show_message(rank, one)
    if not found.messages:
        console.out.print("nothing of it is remembered")
    console.hits(found.code, load_project().home, with_source=True)


def _show_message(rank: int, one: "Remembered") -> None:
    from docindex_dagster.serving.memory_answers import moment

    head = Text.assemble((f"{rank:2} ", "dim"), (in_line(f"{one.domain}  {one.session}"), "bold cyan"))
    head.append(in_line(f"  {one.role} {one.tool}".rstrip()), "green").append(f"  {moment(one.at)}", "dim")
    console.out.print(head)
    signals = ", ".join(name for name, _ in one.signals)
    console.out.print(Text(f"   {one.score:.4f}  message {one.message_id}  {signals}".rstrip(), "dim"))
    for line in visible(one.text).split("\n"):
        if line.strip():
            console.out.print(Text(f"   {line}"), soft_wrap=True)
    for anchored in one.anchors:
        _show_anchor(anchored)


def _show_anchor(one: "Anchored") -> None:
    from docindex_dagster.serving.memory_answers import now

    console.out.print(Text(in_line(f"   names {now(one)}"), "cyan" if one.state == "fresh" else "yellow"))
    if one.dependents is not None:
        console.out.print(Text(f"      depending on it: {one.dependents:,}", "dim"))
    for step in one.impact:
        console.out.print(Text(in_line(f"      {step.subject} {step.predicate} it  {step.place}"), "dim"))


def show_status(domains: "Sequence[DomainStatus]") -> None:
    """Print how each domain is."""
    from docindex_dagster.serving.memory_answers import MEGABYTE, moment

    if not domains:
        console.out.print("nothing is remembered yet: write with `docindex memory ingest`, or give agents a --domain")
        return
    columns = ("domain", "messages", "sessions", "chunks", "not folded", "to be erased", "MB", "last message (UTC)")
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
    """Print what a fold made, and what it erased."""
    counts = f"{console.count(one.messages, 'message')} ({one.added:,} new, {one.removed:,} gone)"
    made = f"{console.count(one.chunks, 'chunk')}, {console.count(one.edges, 'edge')}"
    console.out.print(f"{one.domain}: {counts}, {made}; {one.seconds:.1f} s")
    if one.receipt is not None:
        show_receipt(one.receipt)


def show_receipt(one: "Receipt") -> None:
    """Print what was erased, and what was read to prove it."""
    what = console.count(len(one.forgotten), "message") if one.forgotten else "nothing that was forgotten"
    console.out.print(
        f"{one.domain}: erased {what}; read {console.count(one.files, 'file')} ({one.bytes:,} bytes), and none holds "
        f"an id or a text of them; {one.erased_at}"
    )
