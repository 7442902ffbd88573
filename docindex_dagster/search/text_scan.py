"""Full scan of chunk texts for what indexes cannot find: punctuation, parts of words, patterns.

Patterns use RE2 syntax, which guarantees linear time for any user input.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, repeat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.traces import spanned
from docindex_dagster.search.cancellation import Patience
from docindex_dagster.search.candidates import Pool, Ranking
from docindex_dagster.stores.parts import Piece, Place

_MAX_REGEX = 1000  # characters: the cost per text grows with the length
LONGEST_S = 30.0  # time limit for a search
_ROWS = 1000  # rows per piece
_TEXTS_PER_CHECK = 500  # texts between checks of the deadline
_MIN_LITERAL = 3  # minimum length of a literal part of a pattern that is worth searching for first
_GROUP = "docindex_span"
_SPANS_LINES = re.compile(r"\n|\\n|\\x0a|\\x\{a|\(\?\w*s", re.IGNORECASE)  # in patterns that may span lines
_TEXT_ANCHORS = re.compile(r"\\[Az]")  # in patterns that may match a line on its own but not within a text
_PRIVATE = range(0xE000, 0xF900)
# Quoted text, an escaped character or a class, in which a parenthesis starts no group; then the starts of groups.
_PARTS = re.compile(r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\]|\(\?P?<\w+>|\(\?|\(", re.DOTALL)
_SPECIAL = re.compile(r"[^0-9A-Za-z_\u0080-\U0010ffff]")
# Tokens of a pattern: an escaped character, a class, the start of a group, a repeat count, or a single character.
_PIECES = re.compile(
    r"\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\((?:\?:|\?P?<\w+>|\?)?|\{\d+(?:,\d*)?\}|.", re.DOTALL
)
_REPEATED = ("?", "*", "+")
_UNKNOWN = ("(?", r"\Q", r"\E")  # flags, and quoted text
_NO_CHARACTERS = (".", "^", "$", ")", "\n", "\r")
_ESCAPED = (*"dDwWsSbBAztnrfva\n\r",)  # escapes for a class, a position or a control character


@dataclass(frozen=True, slots=True)
class Pattern:
    """A search pattern for texts: an exact string, or a regular expression in which `^` and `$` match at lines."""

    text: str
    is_regex: bool

    def check(self) -> None:
        """Reject invalid regular expressions, and those that match the empty string.

        Raises:
            QueryError: the regular expression is rejected; the message says why.
        """
        if not self.is_regex:
            return
        if len(self.text) > _MAX_REGEX:
            raise QueryError(f"the regular expression is too long: expected at most {_MAX_REGEX:,} characters")
        try:
            matches_nothing = bool(pc.match_substring_regex(pa.array([""]), self.regex)[0].as_py())
        except pa.ArrowInvalid as error:
            problem = str(error).removeprefix("Invalid regular expression: ").removesuffix(f": {self.regex}")
            raise QueryError(f"invalid RE2 pattern {self.text!r}: {problem}") from error
        if matches_nothing:
            raise QueryError("the regular expression matches the empty string, and thus every chunk")

    def counts(self, texts: pa.Array) -> pa.Array:
        """Return how often each text contains the pattern."""
        if self.is_regex:
            return pc.count_substring_regex(self._with_plain_ends(texts), self.regex)
        return pc.count_substring(texts, self.text)

    def matches(self, texts: pa.Array) -> pa.Array:
        """Return whether each text contains the pattern, that is, whether its count is positive."""
        if not self.is_regex:
            return _contains(texts, self.text)
        text = longest_literal(self.text)
        if len(text) < _MIN_LITERAL:
            return pc.match_substring_regex(self._with_plain_ends(texts), self.regex)
        may_match = _contains(texts, text)
        found = pc.match_substring_regex(self._with_plain_ends(texts.filter(may_match)), self.regex)
        return pc.replace_with_mask(may_match, may_match, found)

    def _with_plain_ends(self, texts: pa.Array) -> pa.Array:
        """Convert Windows line endings, which `$` does not match, if the pattern contains `$`."""
        if "$" in self.text and pc.any(pc.match_substring_regex(texts, "\r\n")).as_py():
            return pc.replace_substring(texts, "\r\n", "\n")
        return texts

    def spans(self, lines: list[str]) -> list[tuple[int, int] | None]:
        """Return the start and end of the first match in each line, in characters."""
        if not self.is_regex:
            starts = [line.find(self.text) for line in lines]
            return [(start, start + len(self.text)) if start >= 0 else None for start in starts]
        pattern = f"(?P<{_GROUP}>{_without_groups(self.regex)})"
        found = pc.extract_regex_span(pa.array(lines, pa.string()), pattern=pattern)
        return [
            None if item is None else _in_characters(line, *item[_GROUP])
            for line, item in zip(lines, found.to_pylist(), strict=True)
        ]

    def may_be_in(self, texts: Sequence[str]) -> list[bool]:
        """Return which texts may contain a match: a text contains all that its lines contain."""
        if not self.is_regex:
            return [self.text in text for text in texts]
        if _TEXT_ANCHORS.search(self.text):
            return [True] * len(texts)
        array = pa.array(texts, pa.string())
        array = array if self.is_over_lines else self._with_plain_ends(array)
        found: list[bool] = pc.match_substring_regex(array, self.regex).to_pylist()
        return found

    def places(self, text: str) -> list[tuple[int, int]]:
        """Return all non-overlapping matches in a text, [start, end) in characters.

        Raises:
            QueryError: the text contains every character that could serve as a mark.
        """
        if not self.is_regex:
            starts = [-len(self.text)]
            while (start := text.find(self.text, starts[-1] + len(self.text))) >= 0:
                starts.append(start)
            return [(start, start + len(self.text)) for start in starts[1:]]
        return self._places_across_lines(text) if self.is_over_lines else self._places_in_lines(text)

    @property
    def is_over_lines(self) -> bool:
        """Whether matches of the regular expression may span lines."""
        return bool(_SPANS_LINES.search(self.text))

    def _places_across_lines(self, text: str) -> list[tuple[int, int]]:
        return self._spans_by_marks([text], _unused_characters(text))[0]

    def _places_in_lines(self, text: str) -> list[tuple[int, int]]:
        """Search line by line, like grep: white space excludes newlines, and `$` matches before a carriage return."""
        ends = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
        lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
        numbers = np.flatnonzero(pc.match_substring_regex(pa.array(lines, pa.string()), self.regex)).tolist()
        marked = self._spans_by_marks([lines[number] for number in numbers], _unused_characters(text))
        places = zip(numbers, marked, strict=True)
        return [(ends[number] + start, ends[number] + end) for number, spans in places for start, end in spans]

    def _spans_by_marks(self, texts: list[str], marks: tuple[str, str]) -> list[list[tuple[int, int]]]:
        """Return the matches in each text, found by inserting a mark before and after each."""
        before, after = marks
        marked = pc.replace_substring_regex(
            pa.array(texts, pa.string()), pattern=self.regex, replacement=rf"{before}\0{after}"
        )
        return [_spans_between(text, before, after) for text in marked.to_pylist()]

    @property
    def regex(self) -> str:
        """The regular expression for RE2."""
        return f"(?m){self.text}"


def _spans_between(marked: str, before: str, after: str) -> list[tuple[int, int]]:
    """Return the positions of the parts between marks in the text without marks."""
    first, *others = marked.split(before)
    found, at = [], len(first)
    for held, _, rest in (part.partition(after) for part in others):
        found.append((at, at + len(held)))
        at += len(held) + len(rest)
    return found


def _unused_characters(text: str) -> tuple[str, str]:
    """Return two private-use characters that a text does not contain.

    Raises:
        QueryError: the text contains all of them.
    """
    unused = list(islice((char for char in map(chr, _PRIVATE) if char not in text), 2))
    if len(unused) < 2:  # noqa: PLR2004 one mark before a match, one after it
        raise QueryError("a file contains every private-use character of Unicode: search for exact text instead")
    return unused[0], unused[1]


def _without_groups(regex: str) -> str:
    """Return a regular expression without capturing groups: Arrow reports only named groups, and we add our own."""

    def replace_group(part: re.Match[str]) -> str:
        if part[0] == "(" or part[0].startswith(("(?P<", "(?<")):
            return "(?:"
        is_open = part[0].startswith(r"\Q") and not part[0].endswith(r"\E")
        return part[0] + r"\E" * is_open  # more text follows

    return _PARTS.sub(replace_group, regex)


def _in_characters(line: str, start: int, length: int) -> tuple[int, int]:
    encoded = line.encode()
    # An RE2 pattern may match part of a character.
    first = len(encoded[:start].decode(errors="ignore"))
    return first, first + len(encoded[start : start + length].decode(errors="ignore"))


def _contains(texts: pa.Array, text: str) -> pa.Array:
    """Return whether each text contains another text."""
    if len(text) > _MAX_REGEX:
        return pc.match_substring(texts, text)
    return pc.match_substring_regex(texts, escape_regex(text))


def contains_pattern(texts: pa.Array, pattern: Pattern, patience: Patience) -> pa.Array:
    """Return whether each text contains a pattern.

    Raises:
        QueryError: the search takes too long.
    """
    return _with_deadline_checks(texts, pattern.matches, patience)


def count_matches(texts: pa.Array, pattern: Pattern, patience: Patience) -> pa.Array:
    """Return how often each text contains a pattern.

    Raises:
        QueryError: the search takes too long.
    """
    return _with_deadline_checks(texts, pattern.counts, patience)


def _with_deadline_checks(texts: pa.Array, ask: Callable[[pa.Array], pa.Array], patience: Patience) -> pa.Array:
    """Call `ask` with slices of the texts, and check the deadline before each."""
    found = []
    for start in range(0, max(1, len(texts)), _TEXTS_PER_CHECK):
        patience.check()
        found.append(ask(texts.slice(start, _TEXTS_PER_CHECK)))
    return pa.concat_arrays(found)


def pieces(pool: Pool) -> Iterator[Piece]:
    """Yield the rows that match the filters, in no particular order."""
    return pool.reader.parts.pieces(pool.filters, pool.filters.to_mask, _ROWS)


@spanned("scan")
def find_matching_chunks(pool: Pool, pattern: Pattern, longest_s: float = LONGEST_S) -> Ranking:
    """Return the chunks whose text contains a pattern, and the counts: tests last, otherwise ordered by path.

    Raises:
        QueryError: the pattern is invalid, or the search takes too long.
    """
    pattern.check()
    patience = Patience.of(longest_s)
    if not pool.limit:
        return []
    # Read pieces in the order of their first location, so that the last ones may not be needed.
    best: list[tuple[Place, int, int]] = []  # with the number of a piece, and a position in its part
    found = sorted(pieces(pool), key=lambda piece: piece.first)
    for number, piece in enumerate(found):
        if len(best) == pool.limit and piece.first > best[-1][0]:
            break
        is_match = np.asarray(contains_pattern(piece.batch["text"], pattern, patience))
        positions = piece.positions[is_match]
        places = zip(piece.part.places(positions), repeat(number), positions.tolist(), strict=False)
        best = sorted([*best, *places])[: pool.limit]
    rows = [(found[number].part.batch["text"], position) for _, number, position in best]
    held = pa.concat_arrays([pa.array([], pa.string()), *(text.slice(position, 1) for text, position in rows)])
    counts = count_matches(held, pattern, patience).to_pylist()
    return [(place[-1], float(count)) for (place, _, _), count in zip(best, counts, strict=True)]


def escape_regex(text: str) -> str:
    """Return a pattern that matches exactly this text."""
    return _SPECIAL.sub(lambda found: r"\x00" if found[0] == "\0" else f"\\{found[0]}", text)


def longest_literal(regex: str) -> str:
    """Return the longest literal text that every match of a pattern contains; empty if there is none.

    RE2 finds a literal several times faster than Arrow does, and faster still than a pattern.

    Returns an empty text for unknown syntax. Ignores groups, alternatives and flags. No literal contains a newline.
    """
    runs = [""]
    depth = 0
    was_repeated = False
    for part in _PIECES.findall(regex):
        is_repeat = part in _REPEATED or (part[0] == "{" and len(part) > 1)
        if part in _UNKNOWN or (is_repeat and was_repeated and part != "?") or (part == "|" and not depth):
            return ""
        depth += (part[0] == "(") - (part == ")")
        if is_repeat:
            if not was_repeated and part != "+":
                runs[-1] = runs[-1][:-1]
            runs.append("")
        elif depth or _ends_a_run(part):
            runs.append("")
        elif (char := _character(part)) is None:
            return ""
        else:
            runs[-1] += char
        was_repeated = is_repeat
    return max(runs, key=len)


def _ends_a_run(part: str) -> bool:
    is_class = part[0] == "[" and len(part) > 1
    return is_class or part in _NO_CHARACTERS or (part[0] == "\\" and part[1:] in _ESCAPED)


def _character(part: str) -> str | None:
    """Return the character that a token matches; None if unknown."""
    if part[0] != "\\":
        return part
    return part[1] if len(part) > 1 and not part[1].isalnum() else None
