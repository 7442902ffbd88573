"""Git's glob patterns as regular expressions over bytes.

Names are bytes, as they are for git: `?` is one byte. The expressions match in polynomial time: a `*` is tried at its
leftmost place only (an atomic group), which is enough because the next `*` can reach whatever this one could.
"""

import re

_CLASSES = {
    b"alnum": rb"[0-9A-Za-z]",
    b"alpha": rb"[A-Za-z]",
    b"blank": rb"[ \t]",
    b"cntrl": rb"[\0-\x1f\x7f]",
    b"digit": rb"[0-9]",
    b"graph": rb"[!-~]",
    b"lower": rb"[a-z]",
    b"print": rb"[ -~]",
    b"punct": rb"[!-/:-@\[-`{-~]",
    b"space": rb"[ \t-\r]",
    b"upper": rb"[A-Z]",
    b"xdigit": rb"[0-9A-Fa-f]",
}
_NAMED_CLASS = re.compile(rb"(?s)\[:([^\]]*):\]")
_BYTES = bytes(range(256))
_NEVER = b"(?!)"


def translate(pattern: bytes) -> bytes:
    """Return an expression, for re.DOTALL, that matches exactly the paths that `pattern` does.

    `*`, `?` and `[…]` match no slash; `**` as a whole component matches any number of components. A malformed pattern
    matches nothing, as in git.
    """
    parts: list[bytes] = []
    in_star = in_globstar = False
    at = 0
    while at < len(pattern):
        char = pattern[at : at + 1]
        if char == b"*":
            parts.append(b")" * in_star)
            after = at + len(pattern[at:]) - len(pattern[at:].lstrip(b"*"))
            if not _is_component(pattern, at, after):
                parts.append(b"(?>[^/]*?")
                in_star, at = True, after
            elif after == len(pattern):
                parts.append(b".*")
                in_star, at = False, after
            else:
                parts.append(b")" * in_globstar + b"(?>(?:.*?/)??")
                in_star, in_globstar, at = False, True, after + 1
        elif char == b"?":
            parts.append(b"[^/]")
            at += 1
        elif char == b"[":
            members, at = _parse_class(pattern, at + 1)
            parts.append(members)
        elif char == b"\\":
            parts.append(re.escape(pattern[at + 1 : at + 2]) or _NEVER)
            at += 2
        else:
            parts.append(re.escape(char))
            at += 1
    return b"".join(parts) + rb"\Z" + b")" * (in_star + in_globstar)


def _is_component(pattern: bytes, start: int, end: int) -> bool:
    """Whether the stars in [start, end) are a `**` between slashes."""
    return end - start > 1 and pattern[start - 1 : start] in {b"", b"/"} and pattern[end : end + 1] in {b"", b"/"}


def _parse_class(pattern: bytes, at: int) -> tuple[bytes, int]:
    """Parse a bracket expression whose first byte after "[" is at `at`: its expression, and where it ends."""
    is_negated = pattern[at : at + 1] in {b"!", b"^"}
    at += is_negated
    start = at
    members: set[int] = set()
    low: int | None = None  # what a following "-" would begin a range with
    while at < len(pattern) and (at == start or pattern[at : at + 1] != b"]"):
        if named := _NAMED_CLASS.match(pattern, at):
            if named[1] not in _CLASSES:
                return _NEVER, len(pattern)
            members.update(b"".join(re.findall(_CLASSES[named[1]], _BYTES)))
            low, at = None, named.end()
            continue
        is_range = low is not None and pattern[at : at + 1] == b"-" and pattern[at + 1 : at + 2] not in {b"", b"]"}
        at += is_range
        at += pattern[at : at + 1] == b"\\"
        if at >= len(pattern):
            return _NEVER, at
        high = pattern[at]
        members.update(range(low, high + 1) if is_range and low is not None else (high,))
        low, at = None if is_range else high, at + 1
    if at >= len(pattern):
        return _NEVER, at
    allowed = (set(_BYTES) - members if is_negated else members) - {ord("/")}
    return b"[" + b"".join(b"\\x%02x" % byte for byte in sorted(allowed)) + b"]" if allowed else _NEVER, at + 1
