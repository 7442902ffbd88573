"""Answers about memory as text within a token budget.

Text of messages is untrusted data, like the text of files. It is printed behind a bar at the start of each line.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from docindex_dagster.core.safe_text import make_visible, on_one_line
from docindex_dagster.memory.anchors import Anchored
from docindex_dagster.memory.message import Anchor
from docindex_dagster.memory.results import DomainStatus, Forgotten, Ingested, Recalled, Remembered
from docindex_dagster.render import budget, markdown

_PER_SECOND = 1_000_000
_SHARE_OF_MESSAGES = 2 / 3  # of the budget, if code is included
MEGABYTE = 1_000_000


def moment(at: int | None) -> str:
    """Format a time, given in microseconds since 1970, to the second."""
    if at is None:
        return "never"
    return f"{datetime.fromtimestamp(at // _PER_SECOND, UTC):%Y-%m-%dT%H:%M:%SZ}"


def of_ingested(one: Ingested) -> str:
    """Format the result of storing a message."""
    if not one.message_id:
        return f"The text is blank: nothing was stored in {one.domain}. chunks: 0, concepts: 0, edges: 0"
    again = " It was already stored, and counts once." if one.is_repeat else ""
    counts = f"chunks: {one.chunks}, concepts: {one.concepts}, edges: {one.edges}, extraction: {one.extraction}"
    later = "; the next fold extracts the remaining concepts" if one.extraction == "pending" else ""
    lines = [
        f"Stored in {one.domain}, session {on_one_line(one.session)}, as message {one.message_id}.{again}",
        f"{counts}{later}; {one.latency_ms:.1f} ms",
        *([f"   concepts | {on_one_line(', '.join(one.extracted))}"] if one.extracted else []),
        *([f"   cannot look up the code it mentions: {on_one_line(one.problem)}"] if one.problem else []),
        *(f"   mentions {_place(anchor)}" for anchor in one.anchors),
    ]
    return budget.cut("\n".join(lines), budget.DEFAULT)


def of_recalled(found: Recalled, top_k: int, start: int, max_tokens: int) -> str:
    """Format messages, best first, with their origin and text, then the code that was requested with them.

    Args:
        found: all messages from the first one, one more than needed to show that there are further ones; and the code,
            which is only printed on the first page.
        top_k: the number of messages on the page.
        start: the number of messages on earlier pages.
        max_tokens: the budget.
    """
    notes = [f"Note: {on_one_line(warning)}" for warning in found.warnings]
    if not found.messages:
        notes.append("No matching messages. Try other words or fewer filters.")
    has_code = bool(found.code) and not start
    room = int(max_tokens * _SHARE_OF_MESSAGES) if has_code else max_tokens
    page = found.messages[start : start + top_k]
    parts = [_remembered(rank, one) for rank, one in enumerate(page, start=start + 1)]
    left = None if len(found.messages) > start + top_k else 0
    text = budget.fit_page(parts, "messages", start if found.messages else 0, room, notes=notes, left=left)
    return f"{text}\n\n{_code(found, max_tokens - room - 2)}" if has_code else text


def _code(found: Recalled, max_tokens: int) -> str:
    parts = [markdown.of_hit(rank, hit) for rank, hit in enumerate(found.code, start=1)]

    def more(shown: int) -> str:
        left = len(parts) - shown
        return f"{left} of {len(parts)} code passages did not fit; use `search` to list them." if left else ""

    return budget.fit_parts(["From the indexed code and documentation:"], parts, max_tokens, more)


def _remembered(rank: int, one: Remembered) -> str:
    by = f"{one.role} {on_one_line(one.tool)}".rstrip()
    about = f"lines {one.start_line}-{one.end_line}, score {one.score:.3f}"
    about += f", stored {one.repeats + 1} times" if one.repeats else ""
    head = f"{rank}. {one.domain} session {on_one_line(one.session)}, {by}, {moment(one.at)}, message {one.message_id}"
    lines = [f"   | {line}" for line in make_visible(one.text).split("\n") if line.strip()]
    anchors = [line for anchored in one.anchors for line in _anchored(anchored)]
    return "\n".join([f"{head} ({about})", *anchors, *lines])


def _anchored(one: Anchored) -> list[str]:
    """Format a mention of code: its current state, and what depends on it."""
    steps = [
        f"      {on_one_line(step.subject)} {step.predicate} it ({on_one_line(step.place)})" for step in one.impact
    ]
    more = (one.dependents or 0) - len(steps)
    depending = [] if one.dependents is None else [f"      dependents: {one.dependents:,}", *steps]
    return [
        f"   mentions {on_one_line(current_state(one))}",
        *depending,
        *([f"      and {more:,} more"] if more > 0 else []),
    ]


def current_state(one: Anchored) -> str:
    """Format a mention of code and its current location on one line."""
    where = f"{one.source} {one.path}" + (f":{one.start_line}" if one.start_line else "")
    is_elsewhere = (one.source, one.path, one.name) != (one.anchor.source, one.anchor.path, one.anchor.name)
    text = f"{_place(one.anchor)}: {one.state}"
    if one.state in {"gone", "unknown"}:
        return text
    text += f", now {where} {one.name or ''}".rstrip() if is_elsewhere else f", {where}"
    return f"{text}, edited since it was indexed" if one.edited else text


def _place(anchor: Anchor) -> str:
    return on_one_line(f"{anchor.source} {anchor.path} {anchor.name or ''}".rstrip())


def of_forgotten(one: Forgotten) -> str:
    """Format the result of forgetting."""
    what = "everything" if one.what == "domain" else f"{one.what} {on_one_line(one.value)}"
    if not one.messages:
        return f"{one.domain} has no messages to forget: {what}."
    return (
        f"Forgotten in {one.domain}: {what}; messages: {one.messages:,}. Searches no longer find them. Their bytes are "
        "deleted by the next erasure (`docindex memory erase`)."
    )


def of_status(domains: Sequence[DomainStatus], start: int, max_tokens: int) -> str:
    """Format the state of each readable domain, one per line."""
    parts = [_status(one) for one in domains[start:]]
    return budget.fit_page(parts, "domains", start, max_tokens, separator="\n")


def _status(one: DomainStatus) -> str:
    access = "read and write" if one.is_bound else "read"
    text = f"- {one.domain} ({access}): {one.messages:,} messages in {one.sessions:,} sessions, {one.chunks:,} chunks"
    text += f", {one.bytes / MEGABYTE:.1f} MB; not folded: {one.tail:,}; forgotten but not erased: {one.forgotten:,}"
    text += f"; from {moment(one.oldest_at)} to {moment(one.newest_at)}" if one.messages else ""
    text += f"; folded at {one.folded_at}" if one.folded_at else ""
    return "\n".join([text, *(f"   damaged: {on_one_line(flaw)}" for flaw in one.flaws)])
