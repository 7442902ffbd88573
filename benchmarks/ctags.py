"""Measure how many symbols of Universal Ctags docindex finds.

    python -m benchmarks.ctags FOLDER... [--differences N]

For each git work tree or folder, the benchmark compares the code files that discovery would index, in languages that
both tools support. It compares functions, methods, classes, structs, interfaces, enums, and similar kinds. A tag is
found if a symbol has the same last name and the same kind (callable or type), and its lines contain the tag's line or
start within one line of it. Both tools parse a file in the same language, regardless of its suffix.

Requires Universal Ctags 5.9 or later with JSON: `apt-get install universal-ctags`, `brew install universal-ctags`.
"""

import argparse
import json
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.corpus import CodeFile, code_files, revision
from docindex_dagster.code.extraction import TYPE_KINDS, extract
from docindex_dagster.code.parsers import parse
from docindex_dagster.code.symbols import Symbol

if TYPE_CHECKING:
    from tree_sitter import Tree

_CALLABLE = frozenset({"function", "method", "macro"})
_TYPE = TYPE_KINDS | {"module", "type"}
_COARSE = dict.fromkeys(_CALLABLE, "callable") | dict.fromkeys(_TYPE, "type")


@dataclass(frozen=True, slots=True)
class _Language:
    """The ctags name of a language, and its kinds to compare."""

    name: str
    callables: frozenset[str]
    types: frozenset[str]


def _language(name: str, callables: str, types: str = "") -> _Language:
    return _Language(name, frozenset(callables.split()), frozenset(types.split()))


_LANGUAGES = {
    "bash": _language("Sh", "function"),
    "c": _language("C", "function", "struct union enum"),
    "cpp": _language("C++", "function", "class struct union enum"),
    "csharp": _language("C#", "method", "class struct interface enum"),
    "elixir": _language("Elixir", "function macro guard delegate callback", "module protocol implementation"),
    "go": _language("Go", "func methodSpec", "struct interface"),
    "haskell": _language("Haskell", "function", "type"),
    "java": _language("Java", "method", "class interface enum annotation"),
    "javascript": _language("JavaScript", "function method generator getter setter", "class"),
    "kotlin": _language("Kotlin", "method", "class interface object"),
    "lua": _language("Lua", "function"),
    "php": _language("PHP", "function", "class interface trait"),
    "python": _language("Python", "function member", "class"),
    "ruby": _language("Ruby", "method singletonMethod", "class module"),
    "rust": _language("Rust", "function method", "struct interface enum implementation"),
    "sql": _language("SQL", "function procedure trigger", "table view"),
    "tsx": _language("TypeScript", "function method generator", "class interface enum"),
    "typescript": _language("TypeScript", "function method generator", "class interface enum"),
}


def _stem(name: str) -> str:
    """Remove a leading sign or word and specialization arguments, which ctags may omit from the name."""
    return re.sub(r"(?<=\w)<.*>$", "", re.sub(r"^(?:~|operator(?=.))", "", name))


@dataclass(frozen=True, slots=True)
class Tag:
    """A definition found by ctags."""

    language: str
    path: str
    line: int
    name: str
    kind: str
    source: str  # text of its line

    @property
    def last_name(self) -> str:
        """The name without its scopes and white space."""
        name = "".join(self.name.split())
        if name.startswith("operator"):
            return _stem(name)
        separator = r"::" if self.language == "bash" else r"(?<=\w)(?:\.|::|:|#)(?=\w)"
        return _stem(re.split(separator, name)[-1])


@dataclass(frozen=True, slots=True)
class Compared:
    """A tag, and whether docindex finds it."""

    tag: Tag
    is_found: bool


# Rules for tags that are not definitions: the language (None for all) and a test.
_NO_DEFINITIONS: tuple[tuple[str | None, Callable[[Tag], object]], ...] = (
    # A name that ctags invented.
    (None, lambda tag: re.match(r"__anon|[Aa]nonymous", tag.name) is not None),
    # A macro created it, or ctags lost its position: the line does not contain the name.
    (None, lambda tag: tag.last_name not in "".join(tag.source.split())),
    # A macro in front of a definition, on its own line.
    ("cpp", lambda tag: re.match(r"\s*[A-Z_0-9]+\([^{]*$", tag.source) is not None and tag.name.isupper()),
    # A macro that creates a name or a type: NAME(x)(…), NAME(x)* …
    ("cpp", lambda tag: re.search(re.escape(tag.name) + r"\s*\(\w+\)[\s*&]*[\w(]", tag.source)),
    # An array.
    ("bash", lambda tag: tag.name.endswith("=")),
    # A primary constructor, a delegate (which is a type), or a constraint `where T : …`.
    ("csharp", lambda tag: tag.kind == "method" and re.search(r"\b(class|delegate|record|struct)\b", tag.source)),
    ("csharp", lambda tag: f"where {tag.name} :" in tag.source),
    # The components of a record, which are not methods.
    ("java", lambda tag: tag.kind == "method" and " record " in f" {tag.source}"),
    # An object literal, which ctags reports as a class.
    ("javascript", lambda tag: tag.kind == "class" and re.search(r"\b(class|function)\b", tag.source) is None),
    # A function with two names (docindex keeps the assigned one), or with a computed name.
    ("javascript", lambda tag: re.search(r"[:=]\s*function\*?\s+\w", tag.source)),
    ("javascript", lambda tag: re.search(r"\](?:\.\w+)?\s*=\s*function", tag.source)),
    # A name that a macro creates, or an implementation: docindex names it by its type, ctags by its protocol.
    ("elixir", lambda tag: tag.name == "unquote" or tag.kind == "implementation"),
    # A lambda parameter or loop variable.
    ("kotlin", lambda tag: tag.kind == "method" and re.search(r"\bfun\b", tag.source) is None),
    # The result of a call with a function argument.
    ("lua", lambda tag: re.search(r"=\s*function\b|function\s+[\w.:]*" + re.escape(tag.name), tag.source) is None),
    # A record field or a keyword.
    ("haskell", lambda tag: tag.kind == "function" and re.match(r"[a-z_(]", tag.source) is None),
    ("haskell", lambda tag: re.search(r"[{,]\s*" + re.escape(tag.name) + r"\s*::", tag.source) is not None),
    ("haskell", lambda tag: tag.name in {"class", "infix", "infixl", "infixr", "pattern"}),
    # A lambda assigned to a name.
    ("python", lambda tag: "lambda" in tag.source),
)
# Node types that the parser reports where ctags reports a definition.
_NO_CODE = re.compile(r".*(?:comment|string|text|heredoc|quoted|haddock|fragment).*")


def compare(files: Sequence[CodeFile]) -> Iterator[Compared]:
    """Compare all tags of files in languages that ctags supports."""
    for language, group in groupby(sorted(files, key=attrgetter("language", "path")), attrgetter("language")):
        if language not in _LANGUAGES:
            continue
        members = list(group)
        tags: defaultdict[str, list[Tag]] = defaultdict(list)
        for tag in _tags(members, language):
            tags[tag.path].append(tag)
        for file in members:
            if file.path in tags:
                parsed = _parse(file)
                for tag in tags[file.path]:
                    if not _is_no_definition(tag) and not parsed.is_no_code(tag):
                        yield Compared(tag, _is_found(tag, _LANGUAGES[language], parsed.symbols))


def _tags(files: Sequence[CodeFile], name: str) -> Iterator[Tag]:
    language = _LANGUAGES[name]
    kinds = language.callables | language.types
    command = [
        "ctags",
        f"--language-force={language.name}",
        "--output-format=json",
        "--fields=+nK",
        "-f",
        "-",
        "-L",
        "-",
    ]
    paths = "\n".join(file.path for file in files)
    root = files[0].root
    output = subprocess.run(
        command, cwd=root, input=paths, capture_output=True, text=True, errors="replace", check=True
    )
    sources: dict[str, list[str]] = {}
    for line in output.stdout.splitlines():
        row = json.loads(line)
        if row["_type"] != "tag" or row["kind"] not in kinds:
            continue
        if row["path"] not in sources:
            sources = {row["path"]: (root / row["path"]).read_bytes().decode("utf-8", "replace").split("\n")}
        source = sources[row["path"]][row["line"] - 1]
        yield Tag(name, row["path"], row["line"], row["name"], row["kind"], source)


@dataclass(frozen=True, slots=True)
class _Parsed:
    """The parsed symbols of a file."""

    tree: "Tree"
    symbols: Mapping[str, list[Symbol]]  # by name

    def is_no_code(self, tag: Tag) -> bool:
        """Return whether the tag's position is in a comment, a string or a keyword."""
        column = len(tag.source[: tag.source.find(tag.last_name)].encode())
        point = (tag.line - 1, max(0, column))
        node = self.tree.root_node.descendant_for_point_range(point, point)
        return node is not None and (node.type == tag.last_name or _NO_CODE.fullmatch(node.type) is not None)


def _parse(file: CodeFile) -> _Parsed:
    data = file.text().encode()
    tree = parse(data, file.language)
    found: defaultdict[str, list[Symbol]] = defaultdict(list)
    for symbol in extract(tree, data, file.language).symbols:
        found[_stem("".join(symbol.name.split()))].append(symbol)
    return _Parsed(tree, found)


def _is_found(tag: Tag, language: _Language, symbols: Mapping[str, list[Symbol]]) -> bool:
    # In JavaScript, a function can also be a class.
    is_either = language.name == "JavaScript" and tag.kind == "class"
    coarse = "callable" if tag.kind in language.callables else "type"
    return any(
        (is_either or _COARSE.get(symbol.kind) == coarse)
        and (symbol.start_line <= tag.line <= symbol.end_line or abs(symbol.start_line - tag.line) <= 1)
        for symbol in symbols.get(tag.last_name, ())
    )


def _is_no_definition(tag: Tag) -> bool:
    return any(where in (None, tag.language) and tells(tag) for where, tells in _NO_DEFINITIONS)


def _print_recall(name: str, compared: Iterable[Compared]) -> None:
    """Print tags and recall by language and kind."""
    for language, group in groupby(sorted(compared, key=attrgetter("tag.language")), attrgetter("tag.language")):
        members = list(group)
        tags = Counter(each.tag.kind for each in members)
        found = Counter(each.tag.kind for each in members if each.is_found)
        kinds = ", ".join(f"{kind} {found[kind] / count:.1%} of {count}" for kind, count in tags.most_common())
        print(f"{name:<26}{language:<12}{len(members):>7}{found.total() / len(members):>8.2%}  {kinds}", flush=True)


def _print_differences(name: str, compared: Iterable[Compared], most: int) -> None:
    missing = sorted((each for each in compared if not each.is_found), key=attrgetter("tag.language"))
    for language, group in groupby(missing, attrgetter("tag.language")):
        members = list(group)
        step = max(1, len(members) // most)  # from the whole repository
        for each in members[::step][:most]:
            tag = each.tag
            print(f"  {language} {tag.kind} {tag.name}  {name}/{tag.path}:{tag.line}: {tag.source.strip()[:110]}")


def main() -> None:
    """Print the rows of each repository, then the totals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--differences", type=int, default=0, metavar="N", help="print N missing tags by language")
    arguments = parser.parse_args()
    if shutil.which("ctags") is None:
        raise SystemExit("ctags not found. Install Universal Ctags, for example with `apt-get install universal-ctags`")
    everything: list[Compared] = []
    print(f"{'':<38}{'tags':>7}{'found':>8}")
    for folder in [path.absolute() for path in arguments.folders]:
        compared = list(compare(list(code_files(folder))))
        _print_recall(f"{folder.name} {revision(folder)}", compared)
        if arguments.differences:
            _print_differences(folder.name, compared, arguments.differences)
        everything += compared
    _print_recall("all", everything)


if __name__ == "__main__":
    main()
