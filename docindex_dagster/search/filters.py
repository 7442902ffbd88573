"""Search filters, as a Tantivy query and as an equivalent mask over table rows."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from docindex_dagster.core.errors import QueryError
from docindex_dagster.core.schemas import COMMIT, NO_LANGUAGE

if TYPE_CHECKING:
    from tantivy import Occur, Query, Schema

# The stores compile a glob into an automaton, which grows with the number of wildcards.
_MAX_GLOB = 500
_MAX_WILDCARDS = 20
_ANY = re.compile(r"[*?]")
SPECIAL = re.compile(r"[*?[{]")
_CLASS = re.compile(r"\[[!^]?[^/\]][^/\]]*\]|\[[!^]?\][^/\]]*\]")
_PARTS = re.compile(rf"\*\*/|\*+|\?|[{{}},]|{_CLASS.pattern}|[^*?{{}},[]+|\[")
_ANYTHING = "(.|\\n)*"  # regular expression syntax shared by both stores
_WILDCARDS = {"**/": f"({_ANYTHING}/)?", "**": _ANYTHING, "*": "[^/]*", "?": "[^/]"}


@dataclass(frozen=True, slots=True)
class Filters:
    """A chunk must match every filter that is set, with any of its values.

    Commits are included only if `source_types` asks for them.
    """

    sources: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    human_languages: tuple[str, ...] = ()
    source_types: tuple[str, ...] = ()
    symbol_kinds: tuple[str, ...] = ()
    path_glob: str | None = None
    paths: tuple[str, ...] = ()
    places: tuple[tuple[str, str], ...] = ()  # alternatives, each a source and a path glob in it

    def _values(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        filters = {
            "source": self.sources,
            "language": self.languages,
            "human_language": self.human_languages,
            "source_type": self.source_types,
            "symbol_kind": self.symbol_kinds,
            "path": self.paths,
        }
        return ((column, values) for column, values in filters.items() if values)

    def to_mask(self, rows: pa.Table) -> NDArray[np.bool_]:
        """Return which rows of a table match: booleans of shape (rows,)."""
        languages = pc.fill_null(rows["language"], NO_LANGUAGE)
        columns = {name: languages if name == "language" else rows[name] for name, _ in self._values()}
        masks = [pc.is_in(columns[name], pa.array(values, pa.string())) for name, values in self._values()]
        if not self.source_types:
            masks.append(pc.not_equal(rows["source_type"], COMMIT))
        if self.path_glob is not None:
            masks.append(_matching(rows, self.path_glob))
        if self.places:
            alternatives = [
                np.asarray(pc.and_(pc.equal(rows["source"], source), _matching(rows, glob)))
                for source, glob in self.places
            ]
            masks.append(np.logical_or.reduce(alternatives))
        matching: NDArray[np.bool_] = np.logical_and.reduce([np.asarray(mask) for mask in masks])
        return matching

    def to_clauses(self, schema: "Schema") -> list[tuple["Occur", "Query"]]:
        """Return Tantivy conditions that do not affect the score."""
        from tantivy import Occur, Query

        queries = [Query.term_set_query(schema, column, list(values)) for column, values in self._values()]
        if self.path_glob is not None:
            queries.append(Query.regex_query(schema, "path", glob_to_regex(self.path_glob)))
        if self.places:
            alternatives = [
                Query.boolean_query(
                    [
                        (Occur.Must, Query.term_query(schema, "source", source)),
                        (Occur.Must, Query.regex_query(schema, "path", glob_to_regex(glob))),
                    ]
                )
                for source, glob in self.places
            ]
            queries.append(Query.boolean_query([(Occur.Should, alternative) for alternative in alternatives]))
        clauses = [(Occur.Must, Query.const_score_query(query, 0.0)) for query in queries]
        if not self.source_types:
            clauses.append((Occur.MustNot, Query.term_query(schema, "source_type", COMMIT)))
        return clauses

    def check(self, schema: "Schema") -> None:
        """Reject filters that one of the stores cannot evaluate.

        Raises:
            QueryError: the path glob is too long or has too many wildcards, or the index does not record the
                language of documents.
        """
        if self.human_languages:
            _check_human_languages(schema)
        globs = [glob for _, glob in self.places] + ([] if self.path_glob is None else [self.path_glob])
        if any(len(glob) > _MAX_GLOB or len(SPECIAL.findall(glob)) > _MAX_WILDCARDS for glob in globs):
            raise QueryError(
                f"the path glob is too complex: expected at most {_MAX_GLOB} characters and {_MAX_WILDCARDS} wildcards"
            )
        if not globs:
            return
        try:
            self.to_clauses(schema)
        except ValueError as error:  # the automaton has too many states
            raise QueryError("the path glob is too complex: use fewer ? after a *") from error


def _matching(rows: pa.Table, glob: str) -> pa.ChunkedArray:
    """Return which paths match a glob: one boolean per row."""
    return pc.match_substring_regex(rows["path"], rf"\A(?:{glob_to_regex(glob)})\z")


def _check_human_languages(schema: "Schema") -> None:
    from tantivy import Query

    try:
        Query.term_query(schema, "human_language", "en")
    except ValueError as error:
        raise QueryError(
            "the index was built by an earlier version, which did not record the language of documents. "
            "Run `docindex index`"
        ) from error


def escape_glob(path: str) -> str:
    """Return the glob that matches exactly this path."""
    return SPECIAL.sub(r"[\g<0>]", path)


def glob_to_regex(glob: str) -> str:
    """Return a regular expression for a full path, in the syntax that both stores share.

    `*` and `?` stay within a folder, `**` crosses folders, `{a,b}` matches any alternative, `[a-c]` matches a character
    in the class and `[!a-c]` any other. A class also matches its own literal text, since file names contain brackets:
    `app/[slug]/page.tsx`. A pattern without a slash is matched against the name at any depth, as in a `.gitignore`. A
    pattern that ends with a slash matches the contents of the folder. A pattern whose last name has neither `*` nor `?`
    matches the file of that name, or the contents of the folder.
    """
    plain = glob.removeprefix("./").removeprefix("/").rstrip("/")
    if plain in {"", "."}:
        return _ANYTHING
    anchored = plain if "/" in glob.rstrip("/") else f"**/{plain}"
    if glob.endswith("/"):
        below = f"/{_ANYTHING}"
    else:
        below = "" if _ANY.search(_CLASS.sub("", plain.rpartition("/")[2])) else f"(/{_ANYTHING})?"
    parts = _PARTS.findall(anchored)
    return "".join(_translate(parts)) + below


def _translate(parts: list[str]) -> Iterator[str]:
    """Translate the parts of a glob; braces that are not closed, or contain no comma, are literal."""
    matched = _matched_braces(parts)
    depth = 0
    for index, part in enumerate(parts):
        if part == "{" and index in matched:
            depth += 1
            yield "("
        elif part == "}" and index in matched:
            depth -= 1
            yield ")"
        elif part == "," and depth:
            yield "|"
        elif part in _WILDCARDS or part.startswith("*"):
            yield _WILDCARDS.get(part, _WILDCARDS["*"])
        elif _CLASS.fullmatch(part) and (chars := _class(part)):
            yield f"({_literal(part)}|{chars})"
        else:
            yield _literal(part)


def _matched_braces(parts: list[str]) -> set[int]:
    """Return the positions of matching braces that contain a comma."""
    opened: list[tuple[int, bool]] = []
    matched: set[int] = set()
    for index, part in enumerate(parts):
        if part == "{":
            opened.append((index, False))
        elif part == "," and opened:
            opened[-1] = (opened[-1][0], True)
        elif part == "}" and opened:
            start, has_comma = opened.pop()
            matched |= {start, index} if has_comma else set()
    return matched


def _class(text: str) -> str:
    """Return a character class as a regular expression without the slash; empty if it has no other characters."""
    inner = text[1:-1]
    is_negated = inner.startswith(("!", "^"))
    ranges = re.findall(r"(.)-(.)|(.)", inner[is_negated:], re.DOTALL)
    pairs = [(first or single, last or single) for first, last, single in ranges]
    parts = [part for first, last in pairs for part in _without_slash(first, last)]
    chars = "".join(f"{_escape_in_class(first)}-{_escape_in_class(last)}" for first, last in parts)
    if is_negated:
        return f"[^/{chars}]"
    return f"[{chars}]" if chars else ""


def _without_slash(first: str, last: str) -> Iterator[tuple[str, str]]:
    for start, end in ((first, min(last, ".")), (max(first, "0"), last)):
        if start <= end:
            yield start, end


def _escape_in_class(char: str) -> str:
    return f"\\{char}" if char in r"\.+*?()|[]{}^$#&-~" else char


def _literal(text: str) -> str:
    return "".join(map(_literal_char, unicodedata.normalize("NFC", text)))


def _literal_char(char: str) -> str:
    decomposed = unicodedata.normalize("NFD", char)
    if decomposed != char:
        return f"({char}|{decomposed})"
    return f"\\{char}" if char in r"\.+*?()|[]{}^$" else char
