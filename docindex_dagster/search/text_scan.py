"""Reading the text of every chunk, for what no index finds: punctuation, parts of words, patterns.

Patterns have RE2's syntax, which takes time in proportion to the text whatever a user types.
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

_LONGEST_REGEX = 1000  # characters: what a text costs grows with them
LONGEST_S = 30.0  # of a search
_ROWS = 1000  # of a piece
_TEXTS_A_LOOK = 500  # at the clock
_SHORTEST = 3  # characters that are worth looking for before a pattern that they are a part of
_GROUP = "docindex_span"
_OF_LINES = re.compile(r"\n|\\n|\\x0a|\\x\{a|\(\?\w*s", re.IGNORECASE)  # of a pattern that may go over lines
_OF_TEXT_ENDS = re.compile(r"\\[Az]")  # of a pattern that may be there only in a line that is looked at alone
_PRIVATE = range(0xE000, 0xF900)
# What may hold a parenthesis that is not a group's: quoted text, an escaped character, a class; then those that are.
_PARTS = re.compile(r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\]|\(\?P?<\w+>|\(\?|\(", re.DOTALL)
_SPECIAL = re.compile(r"[^0-9A-Za-z_\u0080-\U0010ffff]")
# Parts of a pattern: an escaped character, a class, the beginning of a group, a number of repeats, or one character.
_PIECES = re.compile(
    r"\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\((?:\?:|\?P?<\w+>|\?)?|\{\d+(?:,\d*)?\}|.", re.DOTALL
)
_REPEATED = ("?", "*", "+")
_UNKNOWN = ("(?", r"\Q", r"\E")  # flags, and quoted text
_NO_CHARACTERS = (".", "^", "$", ")", "\n", "\r")
_ESCAPED = (*"dDwWsSbBAztnrfva\n\r",)  # they stand for one of several characters, for none, or are not taken up


@dataclass(frozen=True, slots=True)
class Pattern:
    """What to look for in texts: a string as it is, or a regular expression in which `^` and `$` are of lines."""

    text: str
    is_regex: bool

    def check(self) -> None:
        """Refuse what is no regular expression, or finds nothing everywhere.

        Raises:
            QueryError: it says what is wrong.
        """
        if not self.is_regex:
            return
        if len(self.text) > _LONGEST_REGEX:
            raise QueryError(f"the regular expression is too long: at most {_LONGEST_REGEX:,} characters")
        try:
            matches_nothing = bool(pc.match_substring_regex(pa.array([""]), self.regex)[0].as_py())
        except pa.ArrowInvalid as error:
            problem = str(error).removeprefix("Invalid regular expression: ").removesuffix(f": {self.regex}")
            raise QueryError(f"{self.text!r} is no regular expression of RE2: {problem}") from error
        if matches_nothing:
            raise QueryError("the regular expression matches the empty text, and so every chunk")

    def counts(self, texts: pa.Array) -> pa.Array:
        """How often each text holds it."""
        if self.is_regex:
            return pc.count_substring_regex(self._with_plain_ends(texts), self.regex)
        return pc.count_substring(texts, self.text)

    def matches(self, texts: pa.Array) -> pa.Array:
        """Whether each text holds it: where its count is more than 0."""
        if not self.is_regex:
            return _holding(texts, self.text)
        text = necessary(self.text)
        if len(text) < _SHORTEST:
            return pc.match_substring_regex(self._with_plain_ends(texts), self.regex)
        may_match = _holding(texts, text)
        found = pc.match_substring_regex(self._with_plain_ends(texts.filter(may_match)), self.regex)
        return pc.replace_with_mask(may_match, may_match, found)

    def _with_plain_ends(self, texts: pa.Array) -> pa.Array:
        """The texts with the ends of lines that `$` matches, which are others on Windows."""
        if "$" in self.text and pc.any(pc.match_substring_regex(texts, "\r\n")).as_py():
            return pc.replace_substring(texts, "\r\n", "\n")
        return texts

    def spans(self, lines: list[str]) -> list[tuple[int, int] | None]:
        """Where it begins and ends in each line for the first time, in characters."""
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
        """Which texts may have places of it: what a line holds, the text holds, too."""
        if not self.is_regex:
            return [self.text in text for text in texts]
        if _OF_TEXT_ENDS.search(self.text):
            return [True] * len(texts)
        array = pa.array(texts, pa.string())
        array = array if self.is_over_lines else self._with_plain_ends(array)
        found: list[bool] = pc.match_substring_regex(array, self.regex).to_pylist()
        return found

    def places(self, text: str) -> list[tuple[int, int]]:
        """All places of it in a text, [start, end) in characters, none of which overlap.

        Raises:
            QueryError: the text holds every character that could mark the matches.
        """
        if not self.is_regex:
            starts = [-len(self.text)]
            while (start := text.find(self.text, starts[-1] + len(self.text))) >= 0:
                starts.append(start)
            return [(start, start + len(self.text)) for start in starts[1:]]
        return self._over_lines(text) if self.is_over_lines else self._in_lines(text)

    @property
    def is_over_lines(self) -> bool:
        """Whether what a regular expression matches may go over lines."""
        return bool(_OF_LINES.search(self.text))

    def _over_lines(self, text: str) -> list[tuple[int, int]]:
        return self._marked([text], _unused(text))[0]

    def _in_lines(self, text: str) -> list[tuple[int, int]]:
        """Line by line, as grep looks: white space is no end of a line, and `$` is before a carriage return."""
        ends = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))
        lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
        numbers = np.flatnonzero(pc.match_substring_regex(pa.array(lines, pa.string()), self.regex)).tolist()
        marked = self._marked([lines[number] for number in numbers], _unused(text))
        places = zip(numbers, marked, strict=True)
        return [(ends[number] + start, ends[number] + end) for number, spans in places for start, end in spans]

    def _marked(self, texts: list[str], marks: tuple[str, str]) -> list[list[tuple[int, int]]]:
        """The matches in each text, by a replacement that puts a mark before and behind each."""
        before, after = marks
        marked = pc.replace_substring_regex(
            pa.array(texts, pa.string()), pattern=self.regex, replacement=rf"{before}\0{after}"
        )
        return [_between(text, before, after) for text in marked.to_pylist()]

    @property
    def regex(self) -> str:
        """The regular expression for RE2."""
        return f"(?m){self.text}"


def _between(marked: str, before: str, after: str) -> list[tuple[int, int]]:
    """Where the parts between marks were before they had marks."""
    first, *others = marked.split(before)
    found, at = [], len(first)
    for held, _, rest in (part.partition(after) for part in others):
        found.append((at, at + len(held)))
        at += len(held) + len(rest)
    return found


def _unused(text: str) -> tuple[str, str]:
    """Two characters that a text does not hold, of those that Unicode leaves to programs.

    Raises:
        QueryError: it holds all of them, which is no text.
    """
    unused = list(islice((char for char in map(chr, _PRIVATE) if char not in text), 2))
    if len(unused) < 2:  # noqa: PLR2004 one before a match, one behind it
        raise QueryError("a file holds every character that Unicode leaves to programs: look for an exact text instead")
    return unused[0], unused[1]


def _without_groups(regex: str) -> str:
    """A regular expression that captures nothing: Arrow reports named groups alone, and one is to be ours."""

    def changed(part: re.Match[str]) -> str:
        if part[0] == "(" or part[0].startswith(("(?P<", "(?<")):
            return "(?:"
        is_open = part[0].startswith(r"\Q") and not part[0].endswith(r"\E")
        return part[0] + r"\E" * is_open  # something follows

    return _PARTS.sub(changed, regex)


def _in_characters(line: str, start: int, length: int) -> tuple[int, int]:
    encoded = line.encode()
    # A pattern of RE2 may match a part of a character.
    first = len(encoded[:start].decode(errors="ignore"))
    return first, first + len(encoded[start : start + length].decode(errors="ignore"))


def _holding(texts: pa.Array, text: str) -> pa.Array:
    """Whether each of some texts holds another one."""
    if len(text) > _LONGEST_REGEX:
        return pc.match_substring(texts, text)
    return pc.match_substring_regex(texts, quoted(text))


def holds(texts: pa.Array, pattern: Pattern, patience: Patience) -> pa.Array:
    """Whether each text holds a pattern.

    Raises:
        QueryError: patience ends.
    """
    return _at_times(texts, pattern.matches, patience)


def counted(texts: pa.Array, pattern: Pattern, patience: Patience) -> pa.Array:
    """How often each text holds a pattern.

    Raises:
        QueryError: patience ends.
    """
    return _at_times(texts, pattern.counts, patience)


def _at_times(texts: pa.Array, ask: Callable[[pa.Array], pa.Array], patience: Patience) -> pa.Array:
    """What is asked of texts, with looks at the clock."""
    found = []
    for start in range(0, max(1, len(texts)), _TEXTS_A_LOOK):
        patience.check()
        found.append(ask(texts.slice(start, _TEXTS_A_LOOK)))
    return pa.concat_arrays(found)


def pieces(pool: Pool) -> Iterator[Piece]:
    """The rows that meet the filters, in no order."""
    return pool.reader.parts.pieces(pool.filters, pool.filters.to_mask, _ROWS)


@spanned("scan")
def holding(pool: Pool, pattern: Pattern, longest_s: float = LONGEST_S) -> Ranking:
    """The chunks whose text holds a pattern, and how often: those of tests last, else in the order of paths.

    Raises:
        QueryError: it is no pattern, or looking for it takes too long.
    """
    pattern.check()
    patience = Patience.of(longest_s)
    if not pool.limit:
        return []
    # They are read in the order of the first places, so that what is read last may not have to be.
    best: list[tuple[Place, int, int]] = []  # with the number of a piece, and a position in its part
    found = sorted(pieces(pool), key=lambda piece: piece.first)
    for number, piece in enumerate(found):
        if len(best) == pool.limit and piece.first > best[-1][0]:
            break
        is_match = np.asarray(holds(piece.batch["text"], pattern, patience))
        positions = piece.positions[is_match]
        places = zip(piece.part.places(positions), repeat(number), positions.tolist(), strict=False)
        best = sorted([*best, *places])[: pool.limit]
    rows = [(found[number].part.batch["text"], position) for _, number, position in best]
    held = pa.concat_arrays([pa.array([], pa.string()), *(text.slice(position, 1) for text, position in rows)])
    counts = counted(held, pattern, patience).to_pylist()
    return [(place[-1], float(count)) for (place, _, _), count in zip(best, counts, strict=True)]


def quoted(text: str) -> str:
    """A pattern that matches a text as it is."""
    return _SPECIAL.sub(lambda found: r"\x00" if found[0] == "\0" else f"\\{found[0]}", text)


def necessary(regex: str) -> str:
    """The longest text known to be in all that a pattern matches, empty where none is.

    RE2 finds an exact text several times as fast as Arrow does, and faster again than a pattern.

    What is not understood says nothing: of groups, alternatives and flags no text is given. None holds a line's end.
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
    """The character that a part is, or, escaped, stands for; None where that is not known."""
    if part[0] != "\\":
        return part
    return part[1] if len(part) > 1 and not part[1].isalnum() else None
