"""Source rewrites for code that its grammar cannot parse as written.

A rewrite blanks out or replaces the code that breaks the grammar and keeps every other byte in place, so the tree of
the rewritten source is also valid for the original. A rewrite takes linear time. A wrong rewrite does little harm,
since `parse` keeps the tree with the fewest broken bytes. `broken` holds the spans that failed to parse, in file order.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from types import MappingProxyType

Spans = Sequence[tuple[int, int]]
Rewrite = Callable[[bytes, Spans], bytes]

BLANKS = bytes(byte if byte in b"\t\r\n" else 0x20 for byte in range(256))
_NEAR = 200  # bytes; code this close to a broken span may be the cause

# Comments, strings and directives, which contain no macros.
_NO_CODE = rb"""//[^\n]*|/\*(?:.*?\*/|.*)|"(?:\\.|[^"\\\n])*"?|^[ \t]*\#(?:\\\r?\n|[^\n])*"""
_KEYWORD = (
    rb"(?:auto|bool|char|class|const|constexpr|double|enum|explicit|extern|float|friend|inline|int|long|namespace|"
    rb"operator|short|signed|static|struct|template|typedef|typename|union|unsigned|using|virtual|void)\b"
)
_ATTRIBUTE = rb"\w*(?:API_?|ATTRIBUTE\w*|CONSTEXPR|DEPRECATED|EXPORT|EXTERN|INLINE|NODISCARD|NORETURN|UNUSED)\b"
_ARGUMENTS = rb"[ \t]*\((?:[^()\n]|\([^()\n]*\))*\)"
_MACRO = re.compile(
    # The possible first characters, so that most positions fail fast.
    rb"(?=[/\"#;}A-Z]|\b[csu]|^[ \t])(?:(?:" + _NO_CODE + rb")"
    # class API Name {
    rb"|\b(?:class|struct|union)\s+(?P<in_head>[A-Z][A-Z0-9_]{4,}(?:"
    + _ARGUMENTS
    + rb")?)(?=\s+\w+(?:\s+final)?\s*[:{<])"
    # API int name(…)
    rb"|(?<![\w.>(,])(?P<attribute>(?:(?=" + _ATTRIBUTE + rb")[A-Z][A-Z0-9_]{4,}(?=[ \t]+[\w:~]|\s+" + _KEYWORD + rb")"
    rb"|[A-Z][A-Z0-9_]{4,}(?=\s+" + _KEYWORD + rb"|[ \t]+[\w:]+(?:<[^<>\n]*>)?[ \t*&]+[\w:~]+\()))"
    # struct Name { int x; NO_COPY(Name) };
    rb"|[;}][ \t]*+(?P<last>[A-Z][A-Z0-9_]{4,}(?:" + _ARGUMENTS + rb")?)(?=\s*\})"
    # BEGIN_NAMESPACE
    rb"|^[ \t]*(?P<line>[A-Z][A-Z0-9_]{4,}(?:" + _ARGUMENTS + rb")?)[ \t]*(?=(?://[^\n]*)?\r?$)(?=\s*[A-Za-z_#/~}\[]))",
    re.MULTILINE | re.DOTALL,
)
_MISPLACED = re.compile(
    # class API [[nodiscard]] Name {
    rb"\b(?:class|struct|union)(?P<head>(?:\s+[A-Z][A-Z0-9_]{4,}(?:" + _ARGUMENTS + rb")?|\s+\[\[[^\]\n]*\]\])+)"
    rb"(?=\s+\w+(?:\s*<[^<>\n]*>|\s+final)?\s*(?::(?!:)|\{))"
    # int name() const GUARDED_BY(lock) {
    rb"|(?:\)|\b(?:const|final|noexcept|override)|&)(?P<tail>\s+[A-Z][A-Z0-9_]{4,}(?:" + _ARGUMENTS + rb")?)(?=\s*\{)"
    # BEGIN_NAMESPACE
    rb"|^(?P<line>(?=\w*(?:BEGIN|END))[A-Z][A-Z0-9_]{4,})(?=[ \t]*\r?$)"
    # int* nonnull name
    rb"|(?<=[*&>])(?P<nullability>\s*\b\w*_[Nn](?:onnull|ullable)\b)",
    re.MULTILINE,
)
# The starts of names and attributes that may be misplaced: at the start of a line, or after one of the words or
# characters below. The pattern starts with a character class, which lets `re` skip most of the text quickly; a single
# alternation would not.
_MISPLACED_NAME = re.compile(rb"[A-Z\[](?<!\S.)(?:(?<=\[)\[|(?<!\[)[A-Z0-9_]{4})")
_BEFORE_MISPLACED = b")&stnle"
_MISPLACED_WORDS = (b"class", b"struct", b"union", b"const", b"final", b"noexcept", b"override")
_BEFORE_NULLABILITY = re.compile(rb"[*&>](?=\s*\w*_[Nn](?:onnull|ullable)\b)")
_MACRO_CALL = re.compile(
    rb"(?:" + _NO_CODE + rb")|\b(?P<macro>[A-Z][A-Z0-9_]{4,}[ \t]*\()|[()]", re.MULTILINE | re.DOTALL
)
_TO_DECLARATION = re.compile(rb"\s+(?:template|class|struct|enum|union|typedef|using|namespace)\b")
_DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*(?P<name>if|elif|else|endif)(?:\\\r?\n|[^\n])*", re.MULTILINE)
_SIGNATURE = re.compile(rb"(?<=[ \t\n])[ \t](?=[<(])")
_NOT_BASH = re.compile(rb"\\\$\{?#?|\$\+(?=\w)")
_SQL = re.compile(rb"--[^\n]*|/\*(?:.*?\*/|.*)|'[^']*'?|(?P<dollars>\$\w*\$)|;", re.DOTALL)
_BODY = b" SELECT 1; "
_KEPT_SQL = re.compile(
    rb"(?:\s++|--[^\n]*+|/\*.*?\*/)*+(?:create|delete|insert|select|update|with)\b", re.IGNORECASE | re.DOTALL
)
_LEADING = re.compile(
    rb"^([ \t]*+use[ \t]++(?:(?:function|const)[ \t]++)?)\\(?=[\w\\]*+\{)", re.IGNORECASE | re.MULTILINE
)
# Batch terminators: a line with only GO or a slash, and the current MySQL delimiter.
_TERMINATOR = re.compile(
    rb"--[^\n]*|/\*(?:.*?\*/|.*)|'[^']*'?"
    rb"|^[ \t]*+delimiter[ \t]++(?P<delimiter>[^\s\w'\"]{1,8})[ \t]*+(?=\r?$)"
    rb"|^[ \t]*+(?P<line>(?:go(?:[ \t]++\d++)?+|/)[ \t]*+;?+[ \t]*+)(?=(?:--[^\n]*+)?\r?$)"
    rb"|(?P<marks>[^\s\w'\"()\[\],.=-]{1,8})",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_BATCH_END = b";\f"  # in rewritten source
_CREATE = re.compile(rb"^[ \t]*(?=create\s)", re.IGNORECASE | re.MULTILINE)
_SQL_NAME = rb"(?:[\w$#@]+|\"[^\"\n]*\"|`[^`\n]*`|\[[^\]\n]*\])"
_SQL_HEAD = re.compile(
    rb"\s*create(?P<gap>\s+(?:or\s+(?:alter|replace)\s+)?(?:definer\s*=\s*\S+\s+)?)"
    rb"(?P<kind>function|proc(?:edure)?|table|trigger|view)\s+(?:if\s+not\s+exists\s+)?"
    rb"(?P<name>" + _SQL_NAME + rb"(?:\s*\.\s*" + _SQL_NAME + rb"){0,3})",
    re.IGNORECASE,
)
_SQL_BODY = re.compile(rb"\b(?:as|is|begin)\b", re.IGNORECASE)
# Placeholder text after a name and before the end, which replaces code that the grammar cannot parse.
_ROUTINE, _VIEW, _TABLE = (b" AS SELECT ", b" routine_body"), (b" AS SELECT ", b" 1"), (b"(i int", b")")
_QUOTES = bytes(0x22 if byte in b"[]" else byte for byte in range(256))


@dataclass(slots=True)
class _Conditional:
    """An open preprocessor conditional: its directives and the start of its later branches."""

    directives: list[tuple[int, int]]
    other_branches: int | None = None  # start byte of the second branch


def blank_misplaced_macros(source: bytes) -> bytes:
    """Blank C or C++ macros in positions where the language allows no name."""
    rewritten, last = bytearray(source), 0
    for start in sorted({*_misplaced_starts(source)}):
        if start >= last and (match := _MISPLACED.match(source, start)):
            _blank(rewritten, *match.span(match.lastgroup or 0))
            last = match.end()
    return bytes(rewritten)


def _misplaced_starts(source: bytes) -> Iterator[int]:
    """Yield the offsets where a misplaced macro may start, including some false positives."""
    for name in _MISPLACED_NAME.finditer(source):
        end = name.start()
        if source[end - 1 : end] in b"\n":
            yield end
        while source[end - 1 : end].isspace():
            end -= 1
        if end and source[end - 1] in _BEFORE_MISPLACED:
            yield end - next((len(word) for word in _MISPLACED_WORDS if source.endswith(word, 0, end)), 1)
    if b"onnull" in source or b"ullable" in source:
        for before in _BEFORE_NULLABILITY.finditer(source):
            yield before.end()


def blank_leading_backslashes(source: bytes) -> bytes:
    """Blank the optional leading backslash of PHP group `use` declarations, which the grammar does not support."""
    return _LEADING.sub(rb"\1 ", source)


def blank_macros(source: bytes, broken: Spans) -> bytes:
    """Blank C or C++ macros in positions where the grammar expects no name.

    A macro before a declaration is replaced with an attribute, so it remains part of the declaration.
    """
    rewritten = bytearray(source)
    for match in _MACRO.finditer(source):
        if match.lastgroup is None:
            continue
        start, end = match.span(match.lastgroup)
        if match.lastgroup in {"last", "line"} and not _is_near(start, end, broken):
            continue
        _blank(rewritten, start, end)
        if match.lastgroup == "attribute":
            attribute = _attribute_placeholder(source, start, end)
            rewritten[start : start + len(attribute)] = attribute
    return bytes(rewritten)


def _attribute_placeholder(source: bytes, start: int, end: int) -> bytes:
    """Return the replacement for a macro at the start of a line, so that the declaration still starts there."""
    indent = source[source.rfind(b"\n", max(0, start - _NEAR), start) + 1 : start]
    if indent.strip():
        return b""
    if _TO_DECLARATION.match(source, end):
        return b"" if indent else b"export"[: end - start]  # valid only at the top level
    return b"[[" + b"a" * (end - start - len(b"[[]]")) + b"]]"


def blank_macro_arguments(source: bytes, broken: Spans) -> bytes:
    """Blank the arguments of C or C++ macros in broken code, since they may contain types and statements."""
    rewritten = bytearray(source)
    depth, start = 0, 0
    for match in _MACRO_CALL.finditer(source):
        if depth == 0 and match["macro"] and _is_near(*match.span(), broken):
            depth, start = 1, match.end()
        elif depth:
            depth += (match["macro"] is not None or match[0] == b"(") - (match[0] == b")")
            if depth == 0:
                _blank(rewritten, start, match.start())
    return bytes(rewritten)


def keep_first_branches(source: bytes, broken: Spans) -> bytes:
    """Keep only the first branch of C, C++ or C# conditionals with a directive in broken code."""
    rewritten = bytearray(source)
    for conditional in _conditionals(source):
        if any(_is_near(start, end, broken) for start, end in conditional.directives):
            last = conditional.directives[-1][1]
            for start, end in [*conditional.directives, (conditional.other_branches or last, last)]:
                _blank(rewritten, start, end)
    return bytes(rewritten)


def _conditionals(source: bytes) -> Iterator[_Conditional]:
    opened: list[_Conditional] = []
    for match in _DIRECTIVE.finditer(source):
        if match["name"] == b"if":
            opened.append(_Conditional([]))
        if not opened:
            continue
        opened[-1].directives.append(match.span())
        if match["name"] == b"endif":
            yield opened.pop()
        elif match["name"] != b"if" and opened[-1].other_branches is None:
            opened[-1].other_branches = match.start()


def insert_semicolons(source: bytes, broken: Spans) -> bytes:
    """Insert the semicolon that the TypeScript grammar requires before a call signature on its own line."""
    rewritten = bytearray(source)
    for match in _SIGNATURE.finditer(source):
        if _is_near(*match.span(), broken):
            rewritten[match.start()] = ord(";")
    return bytes(rewritten)


def replace_dollars(source: bytes, broken: Spans) -> bytes:
    """Replace escaped dollars in Bash, which the grammar sometimes treats as unescaped, and `$+name` of zsh."""
    rewritten = bytearray(source)
    for match in _NOT_BASH.finditer(source):
        if _is_near(*match.span(), broken):
            rewritten[match.start() : match.end()] = b"$_" if match[0] == b"$+" else b"_" * len(match[0])
    return bytes(rewritten)


def blank_statements(source: bytes, broken: Spans) -> bytes:
    """Blank SQL function bodies and statements that neither create nor query, in broken code."""
    rewritten = bytearray(source)
    start, quote, body = 0, b"", 0
    for match in _SQL.finditer(source):
        if match["dollars"] and not quote:
            quote, body = match[0], match.end()
        elif quote:
            if match[0] == quote:
                if _is_near(body, match.start(), broken, 0) and match.start() - body >= len(_BODY):
                    _blank(rewritten, body, match.start())
                    rewritten[body : body + len(_BODY)] = _BODY
                quote = b""
        elif match[0] == b";":
            if not _KEPT_SQL.match(rewritten, start) and _is_near(start, match.start(), broken, 0):
                _blank(rewritten, start, match.end())
            start = match.end()
    return bytes(rewritten)


def unify_terminators(source: bytes, _: Spans) -> bytes:
    """Replace GO of T-SQL, the slash of Oracle and the current delimiter of MySQL with semicolons."""
    rewritten, delimiter = bytearray(source), b""
    for match in _TERMINATOR.finditer(source):
        kind = match.lastgroup
        if kind == "delimiter":
            delimiter = match["delimiter"] if match["delimiter"] != b";" else b""
            _blank(rewritten, *match.span())
        elif kind == "line" or (kind == "marks" and match["marks"] == delimiter):
            start, end = match.span(kind)
            _blank(rewritten, start, end)
            is_marked = rewritten[start + 1 : start + 2].isspace()
            rewritten[start : start + 1 + is_marked] = _BATCH_END if is_marked else b";"
    return bytes(rewritten)


def keep_names(source: bytes, broken: Spans) -> bytes:
    """Reduce broken tables, views and routines in SQL batches to their names, and blank other broken code."""
    if _BATCH_END not in source:  # semicolons alone may not help, for example in a file with a single Oracle routine
        source = unify_terminators(source, broken)
    if _BATCH_END not in source:
        return source
    rewritten, start = bytearray(source), 0
    while start < len(source):
        end = source.find(_BATCH_END, start) % (len(source) + 1)
        for piece in _pieces(source, start, end):
            if _is_near(*piece, broken, 0):
                _keep_name(rewritten, source, *piece)
        start = end + len(_BATCH_END)
    return bytes(rewritten)


def _pieces(source: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a batch that start with CREATE; a routine extends to the end of the batch."""
    starts = [start, *(match.start() for match in _CREATE.finditer(source, start, end) if match.start() > start)]
    for begin, until in zip(starts, [*starts[1:], end], strict=True):
        head = _SQL_HEAD.match(source, begin, end)
        is_routine = head is not None and head["kind"].lower() not in {b"table", b"view"}
        yield begin, end if is_routine else until
        if is_routine:
            return


def _keep_name(rewritten: bytearray, source: bytes, start: int, end: int) -> None:
    """Keep the name of the object that a piece of SQL creates, and blank everything else."""
    head = _SQL_HEAD.match(source, start, end)
    if head is None:
        if not _KEPT_SQL.match(source, start, end):
            _blank(rewritten, start, end)
        return
    kind = head["kind"].lower()
    before, after = {b"table": _TABLE, b"view": _VIEW}.get(kind, _ROUTINE)
    last = start + len(source[start:end].rstrip())
    room = last - len(before) - len(after)
    if room < head.end():
        return
    body = _SQL_BODY.search(source, head.end(), room) if kind != b"table" else None
    at = body.start() - 1 if body else head.end()
    _blank(rewritten, *head.span("gap"))
    if kind != b"table":
        rewritten[head.start("kind") : head.end("kind")] = b"VIEW".ljust(len(kind))
    rewritten[head.start("name") : head.end()] = head["name"].translate(_QUOTES)
    _blank(rewritten, head.end(), end)
    rewritten[at : at + len(before)] = before
    rewritten[last - len(after) : last] = after
    if last < end:
        rewritten[last] = ord(";")


def _blank(source: bytearray, start: int, end: int) -> None:
    source[start:end] = source[start:end].translate(BLANKS)


def _is_near(start: int, end: int, broken: Spans, near: int = _NEAR) -> bool:
    at = bisect_left(broken, end + near, key=itemgetter(0))
    return at > 0 and broken[at - 1][1] >= start - near


INITIAL_REWRITES: Mapping[str, Callable[[bytes], bytes]] = MappingProxyType(
    {"c": blank_misplaced_macros, "cpp": blank_misplaced_macros, "php": blank_leading_backslashes}
)
"""The rewrite applied to all code of a language before it is parsed."""

REWRITES: Mapping[str, tuple[Rewrite, ...]] = MappingProxyType(
    {
        "bash": (replace_dollars,),
        "c": (blank_macros, keep_first_branches, blank_macro_arguments),
        "cpp": (blank_macros, keep_first_branches, blank_macro_arguments),
        "csharp": (keep_first_branches,),
        "sql": (unify_terminators, keep_names, blank_statements),
        "typescript": (insert_semicolons,),
    }
)
"""The rewrites to try for broken code in a language, each on top of the successful ones before it."""
