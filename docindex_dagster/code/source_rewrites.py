"""Other readings of source that its grammar cannot parse as it stands.

Each blanks out, or fills in, what the grammar stumbles over, and keeps every other byte where it is: a tree of the
reading is one of the source. It costs time linear in the size, and does little harm where it is wrong, since the tree
with the fewest broken bytes is taken. `broken` are the spans of what could not be parsed, in file order.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from types import MappingProxyType

Spans = Sequence[tuple[int, int]]
Reading = Callable[[bytes, Spans], bytes]

BLANKS = bytes(byte if byte in b"\t\r\n" else 0x20 for byte in range(256))
_NEAR = 200  # bytes: what is this close to broken code may have broken it

# Comments, strings and directives, in which nothing is a macro.
_APART = rb"""//[^\n]*|/\*(?:.*?\*/|.*)|"(?:\\.|[^"\\\n])*"?|^[ \t]*\#(?:\\\r?\n|[^\n])*"""
_KEYWORD = (
    rb"(?:auto|bool|char|class|const|constexpr|double|enum|explicit|extern|float|friend|inline|int|long|namespace|"
    rb"operator|short|signed|static|struct|template|typedef|typename|union|unsigned|using|virtual|void)\b"
)
_SAYS_SO = rb"\w*(?:API_?|ATTRIBUTE\w*|CONSTEXPR|DEPRECATED|EXPORT|EXTERN|INLINE|NODISCARD|NORETURN|UNUSED)\b"
_ARGUMENTS = rb"[ \t]*\((?:[^()\n]|\([^()\n]*\))*\)"
_MACRO = re.compile(
    # What any of these begins with: most places are passed over at once.
    rb"(?=[/\"#;}A-Z]|\b[csu]|^[ \t])(?:(?:" + _APART + rb")"
    # class API Name {
    rb"|\b(?:class|struct|union)\s+(?P<in_head>[A-Z][A-Z0-9_]{4,}(?:"
    + _ARGUMENTS
    + rb")?)(?=\s+\w+(?:\s+final)?\s*[:{<])"
    # API int name(…)
    rb"|(?<![\w.>(,])(?P<attribute>(?:(?=" + _SAYS_SO + rb")[A-Z][A-Z0-9_]{4,}(?=[ \t]+[\w:~]|\s+" + _KEYWORD + rb")"
    rb"|[A-Z][A-Z0-9_]{4,}(?=\s+" + _KEYWORD + rb"|[ \t]+[\w:]+(?:<[^<>\n]*>)?[ \t*&]+[\w:~]+\()))"
    # struct Name { int x; NO_COPY(Name) };
    rb"|[;}][ \t]*+(?P<last>[A-Z][A-Z0-9_]{4,}(?:" + _ARGUMENTS + rb")?)(?=\s*\})"
    # BEGIN_NAMESPACE
    rb"|^[ \t]*(?P<line>[A-Z][A-Z0-9_]{4,}(?:" + _ARGUMENTS + rb")?)[ \t]*(?=(?://[^\n]*)?\r?$)(?=\s*[A-Za-z_#/~}\[]))",
    re.MULTILINE | re.DOTALL,
)
_PLACELESS = re.compile(
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
# Where the names and attributes begin that may stand so, on a line of their own or behind what ends like a word here or
# is a sign. It begins with a class of characters, by which `re` skips most of a text; an alternation of all does not.
_PLACELESS_NAME = re.compile(rb"[A-Z\[](?<!\S.)(?:(?<=\[)\[|(?<!\[)[A-Z0-9_]{4})")
_BEFORE_PLACELESS = b")&stnle"
_PLACELESS_WORDS = (b"class", b"struct", b"union", b"const", b"final", b"noexcept", b"override")
_BEFORE_NULLABILITY = re.compile(rb"[*&>](?=\s*\w*_[Nn](?:onnull|ullable)\b)")
_MACRO_CALL = re.compile(
    rb"(?:" + _APART + rb")|\b(?P<macro>[A-Z][A-Z0-9_]{4,}[ \t]*\()|[()]", re.MULTILINE | re.DOTALL
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
# Ends of batches: a line with GO or a slash alone, and the delimiter that was set.
_TERMINATOR = re.compile(
    rb"--[^\n]*|/\*(?:.*?\*/|.*)|'[^']*'?"
    rb"|^[ \t]*+delimiter[ \t]++(?P<delimiter>[^\s\w'\"]{1,8})[ \t]*+(?=\r?$)"
    rb"|^[ \t]*+(?P<line>(?:go(?:[ \t]++\d++)?+|/)[ \t]*+;?+[ \t]*+)(?=(?:--[^\n]*+)?\r?$)"
    rb"|(?P<marks>[^\s\w'\"()\[\],.=-]{1,8})",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_BATCH_END = b";\f"  # in a reading
_CREATE = re.compile(rb"^[ \t]*(?=create\s)", re.IGNORECASE | re.MULTILINE)
_SQL_NAME = rb"(?:[\w$#@]+|\"[^\"\n]*\"|`[^`\n]*`|\[[^\]\n]*\])"
_SQL_HEAD = re.compile(
    rb"\s*create(?P<gap>\s+(?:or\s+(?:alter|replace)\s+)?(?:definer\s*=\s*\S+\s+)?)"
    rb"(?P<kind>function|proc(?:edure)?|table|trigger|view)\s+(?:if\s+not\s+exists\s+)?"
    rb"(?P<name>" + _SQL_NAME + rb"(?:\s*\.\s*" + _SQL_NAME + rb"){0,3})",
    re.IGNORECASE,
)
_SQL_BODY = re.compile(rb"\b(?:as|is|begin)\b", re.IGNORECASE)
# What a name is followed by in place of what the grammar cannot read, and what ends that.
_ROUTINE, _VIEW, _TABLE = (b" AS SELECT ", b" routine_body"), (b" AS SELECT ", b" 1"), (b"(i int", b")")
_QUOTES = bytes(0x22 if byte in b"[]" else byte for byte in range(256))


@dataclass(slots=True)
class _Conditional:
    """A conditional in the making: its directives, and what does not stand in its first branch."""

    directives: list[tuple[int, int]]
    other_branches: int | None = None  # where they start


def without_placeless(source: bytes) -> bytes:
    """C or C++ without macros that stand where the language has a place for none, whatever they are."""
    found, last = bytearray(source), 0
    for start in sorted({*_placeless_starts(source)}):
        if start >= last and (match := _PLACELESS.match(source, start)):
            _blank(found, *match.span(match.lastgroup or 0))
            last = match.end()
    return bytes(found)


def _placeless_starts(source: bytes) -> Iterator[int]:
    """Where what stands without a place may begin, and a few places besides."""
    for name in _PLACELESS_NAME.finditer(source):
        end = name.start()
        if source[end - 1 : end] in b"\n":
            yield end
        while source[end - 1 : end].isspace():
            end -= 1
        if end and source[end - 1] in _BEFORE_PLACELESS:
            yield end - next((len(word) for word in _PLACELESS_WORDS if source.endswith(word, 0, end)), 1)
    if b"onnull" in source or b"ullable" in source:
        for before in _BEFORE_NULLABILITY.finditer(source):
            yield before.end()


def without_leading(source: bytes) -> bytes:
    """PHP without the backslash before a group of names that are used, which means the same and the grammar lacks."""
    return _LEADING.sub(rb"\1 ", source)


def without_macros(source: bytes, broken: Spans) -> bytes:
    """C or C++ without macros that stand where the grammar has no place for a name.

    One before a declaration is read as an attribute, so that it still belongs to it.
    """
    found = bytearray(source)
    for match in _MACRO.finditer(source):
        if match.lastgroup is None:
            continue
        start, end = match.span(match.lastgroup)
        if match.lastgroup in {"last", "line"} and not _is_near(start, end, broken):
            continue
        _blank(found, start, end)
        if match.lastgroup == "attribute":
            stand_in = _stand_in(source, start, end)
            found[start : start + len(stand_in)] = stand_in
    return bytes(found)


def _stand_in(source: bytes, start: int, end: int) -> bytes:
    """What keeps the place of a macro that begins its line, so that the declaration still begins there."""
    indent = source[source.rfind(b"\n", max(0, start - _NEAR), start) + 1 : start]
    if indent.strip():
        return b""
    if _TO_DECLARATION.match(source, end):
        return b"" if indent else b"export"[: end - start]  # it stands only at the top
    return b"[[" + b"a" * (end - start - len(b"[[]]")) + b"]]"


def without_arguments(source: bytes, broken: Spans) -> bytes:
    """C or C++ without the arguments of macros in broken code: types and statements may stand among them."""
    found = bytearray(source)
    depth, start = 0, 0
    for match in _MACRO_CALL.finditer(source):
        if depth == 0 and match["macro"] and _is_near(*match.span(), broken):
            depth, start = 1, match.end()
        elif depth:
            depth += (match["macro"] is not None or match[0] == b"(") - (match[0] == b")")
            if depth == 0:
                _blank(found, start, match.start())
    return bytes(found)


def without_branches(source: bytes, broken: Spans) -> bytes:
    """C, C++ or C# with the first branch alone of conditionals that begin, go on or end in broken code."""
    found = bytearray(source)
    for conditional in _conditionals(source):
        if any(_is_near(start, end, broken) for start, end in conditional.directives):
            last = conditional.directives[-1][1]
            for start, end in [*conditional.directives, (conditional.other_branches or last, last)]:
                _blank(found, start, end)
    return bytes(found)


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


def with_semicolons(source: bytes, broken: Spans) -> bytes:
    """TypeScript with the semicolon before a call signature on a line of its own, which the grammar asks for."""
    found = bytearray(source)
    for match in _SIGNATURE.finditer(source):
        if _is_near(*match.span(), broken):
            found[match.start()] = ord(";")
    return bytes(found)


def without_escapes(source: bytes, broken: Spans) -> bytes:
    """Bash without escaped dollars, which the grammar takes for plain ones in places, and zsh's `$+name`."""
    found = bytearray(source)
    for match in _NOT_BASH.finditer(source):
        if _is_near(*match.span(), broken):
            found[match.start() : match.end()] = b"$_" if match[0] == b"$+" else b"_" * len(match[0])
    return bytes(found)


def without_statements(source: bytes, broken: Spans) -> bytes:
    """SQL without the bodies of functions and without statements that neither create nor query, in broken code."""
    found = bytearray(source)
    start, quote, body = 0, b"", 0
    for match in _SQL.finditer(source):
        if match["dollars"] and not quote:
            quote, body = match[0], match.end()
        elif quote:
            if match[0] == quote:
                if _is_near(body, match.start(), broken, 0) and match.start() - body >= len(_BODY):
                    _blank(found, body, match.start())
                    found[body : body + len(_BODY)] = _BODY
                quote = b""
        elif match[0] == b";":
            if not _KEPT_SQL.match(found, start) and _is_near(start, match.start(), broken, 0):
                _blank(found, start, match.end())
            start = match.end()
    return bytes(found)


def with_terminators(source: bytes, _: Spans) -> bytes:
    """SQL with semicolons where T-SQL has GO, Oracle a slash and MySQL the delimiter that is set."""
    found, delimiter = bytearray(source), b""
    for match in _TERMINATOR.finditer(source):
        kind = match.lastgroup
        if kind == "delimiter":
            delimiter = match["delimiter"] if match["delimiter"] != b";" else b""
            _blank(found, *match.span())
        elif kind == "line" or (kind == "marks" and match["marks"] == delimiter):
            start, end = match.span(kind)
            _blank(found, start, end)
            is_marked = found[start + 1 : start + 2].isspace()
            found[start : start + 1 + is_marked] = _BATCH_END if is_marked else b";"
    return bytes(found)


def with_stand_ins(source: bytes, broken: Spans) -> bytes:
    """SQL in batches with the names alone of broken tables, views and routines, and without other broken code."""
    if _BATCH_END not in source:  # semicolons alone may mend nothing, as in a single routine of Oracle
        source = with_terminators(source, broken)
    if _BATCH_END not in source:
        return source
    found, start = bytearray(source), 0
    while start < len(source):
        end = source.find(_BATCH_END, start) % (len(source) + 1)
        for piece in _pieces(source, start, end):
            if _is_near(*piece, broken, 0):
                _stand_in_for(found, source, *piece)
        start = end + len(_BATCH_END)
    return bytes(found)


def _pieces(source: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of a batch that begin with CREATE; a routine takes the rest."""
    starts = [start, *(match.start() for match in _CREATE.finditer(source, start, end) if match.start() > start)]
    for begin, until in zip(starts, [*starts[1:], end], strict=True):
        head = _SQL_HEAD.match(source, begin, end)
        is_routine = head is not None and head["kind"].lower() not in {b"table", b"view"}
        yield begin, end if is_routine else until
        if is_routine:
            return


def _stand_in_for(found: bytearray, source: bytes, start: int, end: int) -> None:
    """Leave the name of what a piece of SQL creates, and blank all else."""
    head = _SQL_HEAD.match(source, start, end)
    if head is None:
        if not _KEPT_SQL.match(source, start, end):
            _blank(found, start, end)
        return
    kind = head["kind"].lower()
    before, after = {b"table": _TABLE, b"view": _VIEW}.get(kind, _ROUTINE)
    last = start + len(source[start:end].rstrip())
    room = last - len(before) - len(after)
    if room < head.end():
        return
    body = _SQL_BODY.search(source, head.end(), room) if kind != b"table" else None
    at = body.start() - 1 if body else head.end()
    _blank(found, *head.span("gap"))
    if kind != b"table":
        found[head.start("kind") : head.end("kind")] = b"VIEW".ljust(len(kind))
    found[head.start("name") : head.end()] = head["name"].translate(_QUOTES)
    _blank(found, head.end(), end)
    found[at : at + len(before)] = before
    found[last - len(after) : last] = after
    if last < end:
        found[last] = ord(";")


def _blank(source: bytearray, start: int, end: int) -> None:
    source[start:end] = source[start:end].translate(BLANKS)


def _is_near(start: int, end: int, broken: Spans, near: int = _NEAR) -> bool:
    at = bisect_left(broken, end + near, key=itemgetter(0))
    return at > 0 and broken[at - 1][1] >= start - near


FIRST_READINGS: Mapping[str, Callable[[bytes], bytes]] = MappingProxyType(
    {"c": without_placeless, "cpp": without_placeless, "php": without_leading}
)
"""Of each language, that to begin with."""

READINGS: Mapping[str, tuple[Reading, ...]] = MappingProxyType(
    {
        "bash": (without_escapes,),
        "c": (without_macros, without_branches, without_arguments),
        "cpp": (without_macros, without_branches, without_arguments),
        "csharp": (without_branches,),
        "sql": (with_terminators, with_stand_ins, without_statements),
        "typescript": (with_semicolons,),
    }
)
"""Of each language, those to try one upon the other."""
