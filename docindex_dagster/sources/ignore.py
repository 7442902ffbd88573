"""The rules of one `.gitignore`, `.docindexignore` or glob list from the settings, and which rule decides a path.

Callers check one entry at a time, parents first. Ignored folders are not entered, so a rule for a folder covers
everything below it. As in git, paths are bytes, relative to the folder of the rules: `?` matches one byte.

Globs become regular expressions that match in polynomial time. Each `*` is tried only at its leftmost position (an
atomic group), which is enough because the next `*` can reach everything that this one could.

pathspec 1.1 is not an alternative. Its decisions differ from git's, and it rejects patterns that git accepts. It
backtracks for minutes over `a*a*…b`, does not accept bytes, and is several times slower (`benchmarks/ignore_rules.py`).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

_BOM = b"\xef\xbb\xbf"
_SPECIAL = re.compile(rb"[*?\[\\]")
_LITERAL = re.compile(rb"[^*?./]")
_MAX_NAMED_RULES = 10_000  # bounds the work for hostile files
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
    """Return a regular expression, for re.DOTALL, that matches exactly the paths that `pattern` matches.

    `*`, `?` and `[…]` match no slash; a `**` component matches any number of components. A malformed pattern matches
    nothing, as in git.
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
    """Return whether the stars in [start, end) are a `**` between slashes."""
    return end - start > 1 and pattern[start - 1 : start] in {b"", b"/"} and pattern[end : end + 1] in {b"", b"/"}


def _parse_class(pattern: bytes, at: int) -> tuple[bytes, int]:
    """Parse the bracket expression whose first byte after "[" is at `at`; return its regex and end position."""
    is_negated = pattern[at : at + 1] in {b"!", b"^"}
    at += is_negated
    start = at
    members: set[int] = set()
    low: int | None = None  # the start of a range if "-" follows
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


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of an ignore file."""

    line: int  # 1-based
    text: bytes  # as written
    glob: bytes  # without "!" and without leading and trailing slashes
    is_negated: bool
    is_for_folders: bool
    is_for_names: bool  # matches at any depth: the glob applies to the last component


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules of one file, in order; the last match decides."""

    origin: str  # the path of the file, as shown to users
    rules: tuple[Rule, ...]
    names: frozenset[bytes]  # plain names, the most common rules…
    endings: tuple[bytes, ...]  # …and the endings of "*" followed by a plain ending
    other_names: re.Pattern[bytes] | None
    paths: re.Pattern[bytes] | None
    below: bytes = b""  # the path from the file's folder to the source, if the source is below it

    def decide(self, path: bytes, name: bytes, *, is_folder: bool) -> Rule | None:
        """Return the rule that decides an entry, given its path relative to the rules and its last component."""
        path = self.below + path
        if not (
            name in self.names
            or name.endswith(self.endings)
            or (self.other_names and self.other_names.match(name))
            or (self.paths and self.paths.match(path))
        ):
            return None
        for rule in reversed(self.rules):
            if (is_folder or not rule.is_for_folders) and _matches(rule, path, name):
                return rule
        return None


def parse(data: bytes, origin: str) -> RuleSet:
    """Parse the text of an ignore file."""
    lines = enumerate(data.removeprefix(_BOM).split(b"\n"), start=1)
    return _rule_set(origin, [rule for number, line in lines if (rule := _parse_line(number, line)) is not None])


def from_globs(globs: Sequence[str], origin: str) -> RuleSet:
    """Parse a list of globs from the settings."""
    return parse("\n".join(globs).encode("utf-8", "surrogateescape"), origin)


def rules_for_named_entries(rules: RuleSet, *, negated: bool) -> RuleSet | None:
    """Return rules that match the last component of each glob and the folders before it.

    `build/**/*.py` yields `build` and, below it, `*.py`; `src/**` yields only `src`; `*` and `**` yield nothing.

    Args:
        rules: From an ignore file or the settings.
        negated: Use only the negated rules; otherwise only the others.
    """
    named = (named for rule in rules.rules if rule.is_negated == negated for named in _rules_naming(rule))
    found = list(islice(named, _MAX_NAMED_RULES))
    return _rule_set(rules.origin, found) if found else None


def _rules_naming(rule: Rule) -> Iterator[Rule]:
    parts = rule.glob.split(b"/")
    for end, part in enumerate(parts, start=1):
        if _LITERAL.search(part):
            is_last = end == len(parts)
            yield replace(rule, glob=b"/".join(parts[:end]), is_for_folders=rule.is_for_folders or not is_last)


def _parse_line(number: int, line: bytes) -> Rule | None:
    text = line.removesuffix(b"\r")
    trimmed = text.rstrip(b" ")
    if (len(trimmed) - len(trimmed.rstrip(b"\\"))) % 2:
        trimmed = text[: len(trimmed) + 1]  # the backslash preserves the first trailing space
    if not trimmed or trimmed.startswith(b"#"):
        return None
    glob = trimmed.removeprefix(b"!")
    return Rule(
        line=number,
        text=trimmed,
        glob=glob.removesuffix(b"/").removeprefix(b"/"),
        is_negated=trimmed.startswith(b"!"),
        is_for_folders=glob.endswith(b"/"),
        is_for_names=b"/" not in glob.removesuffix(b"/"),
    )


def _rule_set(origin: str, rules: Sequence[Rule]) -> RuleSet:
    names, endings, other_names, paths = set(), set(), [], []
    for rule in rules:
        if not rule.is_for_names:
            paths.append(rule.glob)
        elif not _SPECIAL.search(rule.glob):
            names.add(rule.glob)
        elif rule.glob.startswith(b"*") and not _SPECIAL.search(rule.glob, 1):
            endings.add(rule.glob[1:])
        else:
            other_names.append(rule.glob)
    return RuleSet(origin, tuple(rules), frozenset(names), tuple(endings), _any_of(other_names), _any_of(paths))


def _any_of(globs: Sequence[bytes]) -> re.Pattern[bytes] | None:
    return re.compile(b"|".join(map(translate, dict.fromkeys(globs))), re.DOTALL) if globs else None


def _matches(rule: Rule, path: bytes, name: bytes) -> bool:
    return _compiled(rule.glob).match(name if rule.is_for_names else path) is not None


@lru_cache(maxsize=4096)
def _compiled(glob: bytes) -> re.Pattern[bytes]:
    return re.compile(translate(glob), re.DOTALL)
