"""File classification: by name first, then by content."""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from docindex_dagster.sources import languages


@dataclass(frozen=True, slots=True)
class FileKind:
    """The source type (`doc`, `code`, `test` or `config`), language and loader of a file."""

    source_type: str
    language: str | None
    loader: str  # markdown | mdx | rst | text | html | asciidoc | notebook | pdf | code


_TEXT = FileKind("doc", None, "text")  # also the fallback for text of an unknown kind
_RST = FileKind("doc", "rst", "rst")
_DOCUMENT_LANGUAGES = {"mdx": "markdown", "notebook": "jupyter", "text": None}


def _kinds_by_word(table: dict[str | None, str], source_type: str) -> dict[bytes, FileKind]:
    return {
        word.encode(): FileKind(source_type, language, "code")
        for language, words in table.items()
        for word in words.split()
    }


_BY_ENDING = {
    **_kinds_by_word(languages.CONFIG, "config"),
    **_kinds_by_word(languages.CODE, "code"),
    **{
        ending.encode(): FileKind("doc", _DOCUMENT_LANGUAGES.get(loader, loader), loader)
        for loader, endings in languages.DOCUMENTS.items()
        for ending in endings.split()
    },
}
_BY_NAME = {
    **_kinds_by_word(languages.NAMED_CONFIG, "config"),
    **{name.encode(): _TEXT for name in languages.NAMED_DOCUMENTS.split()},
}
_FIRST_WORD = re.compile(rb"[A-Za-z]+")
_REQUIREMENTS = re.compile(rb"(.*[-_.])?(requirements|constraints)([-_.].*)?\.txt")

_SHEBANGS = re.compile(rb"(?:#![^\n]{0,1000}\n?){1,4}")  # nix-shell names the interpreter on further lines
_PROGRAM = re.compile(r"[A-Za-z-]*[A-Za-z]")  # without a version
_LAUNCHERS = frozenset(languages.LAUNCHERS.split())
_NAMED_OPTIONS = ("-i", "--interpreter", "--command", "-c")


def _code(language: str | None) -> FileKind:
    return FileKind("code", language, "code")


# Ambiguous extensions: patterns that only the other languages match, and the kind that each implies. First match wins.
_OBJECTIVE_C = rb"^[ \t]*(?:@(?:interface|implementation|protocol|import|class|property)\b|#import\b)"
_CPP = rb"^[ \t]*(?:class|namespace|template|using|constexpr)\b|\b(?:public|private):"
_QT_TRANSLATION = rb"\A(?:\xef\xbb\xbf)?\s*<(?:\?xml|!DOCTYPE TS)\b"
_PUPPET = (
    rb"^[ \t]*(?:node[ \t]+['\"\w]|include[ \t]+[\w:]+[ \t]*$|(?:class|define)[ \t]+[\w:]+\s*(?:\(|\{|inherits\b)"
    rb"|[\w:]+[ \t]*\{[ \t]*['\"$\[]|\$\w+[ \t]*=)"
)
# Dependency files that a compiler writes for make: "out.o: in.c in.h".
_DEPENDENCIES = rb"\A(?:#[^\n]*\n|\s)*[\w./$(){}+-]+\.\w+(?:[ \t]+[\w./+-]+)*[ \t]*:(?:[ \t]|$)"
_DTRACE = rb"^[ \t]*(?:#pragma D |#!\S*dtrace)|^[\w$*-]*:[\w$*.-]*:[\w$*-]*:[\w$*-]*[ \t]*(?:$|\{|/)"
_PROLOG = rb"^:-[ \t]*\w|^[a-z]\w*(?:\([^()\n]*\))?[ \t]*(?::-|-->)|^#!\S*swipl"
_OPENCL = (
    rb"\b(?:__)?kernel\s{1,9}(?:\w{1,40}\s{1,9}){0,3}void\b|\b__(?:global|local|constant|private)\b|^#pragma OPENCL"
)
_LATEX = rb"\\(?:NeedsTeXFormat|ProvidesClass|LoadClass|ProvidesExplClass)\b"
_VISUAL_BASIC = rb"\A(?:VERSION [\d.]+ CLASS|Attribute VB_)"
_AMBIGUOUS_KINDS = {
    ending: tuple((re.compile(pattern, re.MULTILINE), kind) for pattern, kind in others)
    for ending, others in {
        b".h": ((_OBJECTIVE_C, _code("objc")), (_CPP, _code("cpp"))),
        b".m": ((_OBJECTIVE_C + rb"|^[ \t]*#include\b", _code("objc")),),
        b".ts": ((_QT_TRANSLATION, FileKind("config", "xml", "code")),),
        b".pp": ((_PUPPET, _code("puppet")),),
        b".d": ((_DEPENDENCIES, FileKind("config", "make", "code")), (_DTRACE, _code(None))),
        b".pl": ((_PROLOG, _code(None)),),
        b".cl": ((_OPENCL, _code("c")),),
        b".cls": ((_LATEX, _TEXT), (_VISUAL_BASIC, _code(None))),
    }.items()
}

# Many Sphinx projects keep reStructuredText in .txt. Only reStructuredText starts a line with a directive or target.
_RST_MARK = re.compile(rb"^\.\. (?:[a-zA-Z][\w:+-]*::(?:\s|$)|_[^\s:][^:\n]{0,200}:(?:\s|$))", re.MULTILINE)

_TEST_FOLDERS = frozenset(
    b"test tests __tests__ spec specs testdata test-data unittests unit-tests integrationtest integration-tests "
    b"androidtest e2e".split()
)
_JAVA_TEST = rb"Tests?[A-Z].*|.*(?<=[a-z0-9_])(?:Tests?|TestCase|IT|Spec|Suite)"
_SCRIPT_TEST = rb".*[._-](?:test|tests|spec|e2e|cy)"
_UNIX_TEST = rb"tests?|test[_-].*|.*[_-](?:unit)?tests?"
_TEST_NAMES = {
    language: re.compile(pattern)
    for pattern, tested in (
        (rb"tests?|test_.*|.*_tests?|conftest", "python"),
        (rb".*_test", "go"),
        (_SCRIPT_TEST, "javascript typescript tsx vue svelte astro"),
        (_JAVA_TEST, "java kotlin scala groovy csharp fsharp swift php objc apex"),
        (rb".*_(?:spec|test)|(?:spec|test)_helper|test_.*", "ruby"),
        (rb".*[_-]test|.*_spec|test_.*|test", "elixir erlang dart lua luau julia r"),
        (_UNIX_TEST + rb"|.*[a-z0-9]Tests?", "c cpp cuda rust zig bash perl d nim sql haskell ocaml"),
    )
    for language in tested.split()
}
_OTHER_TEST = re.compile(_UNIX_TEST)
_TEST_ENDINGS = frozenset({b".bats", b".t"})


def is_converted(kind: FileKind | None) -> bool:
    """Return whether files of this kind are binary and converted to text when they are chunked."""
    return kind is not None and kind.loader in languages.CONVERTED


def classify(path: bytes, data: bytes) -> FileKind:
    """Classify a file by its path relative to the source and its first bytes. Every text file gets a kind."""
    kind = classify_name(path)
    if kind is None or (kind is _TEXT and data.startswith(b"#!") and _is_named_document(path)):
        return _script_kind(path, data) or _TEXT
    ending = _ending(path[path.rfind(b"/") + 1 :].lower())
    if ending == b".txt" and kind.loader == "text" and _RST_MARK.search(data):
        return _RST
    other = next((other for pattern, other in _AMBIGUOUS_KINDS.get(ending, ()) if pattern.search(data)), kind)
    return _as_code(path, other.language) if other.source_type == "code" else other


def is_ending(ending: str) -> bool:
    """Return whether files with this extension, without the dot, are of a known kind."""
    return f".{ending}".lower().encode() in _BY_ENDING


def classify_name(path: bytes) -> FileKind | None:
    """Classify a file by its path alone; return None if only the content can tell."""
    name = path[path.rfind(b"/") + 1 :]
    lower = name.lower()
    if _REQUIREMENTS.fullmatch(lower):
        return _BY_NAME[b"requirements.txt"]
    ending = _ending(lower)
    kind = _BY_NAME.get(name) or _BY_NAME.get(lower) or _BY_ENDING.get(ending)
    if kind is None and (word := _FIRST_WORD.match(lower)):
        kind = _BY_NAME.get(word[0])
    return _as_code(path, kind.language) if kind is not None and kind.source_type == "code" else kind


def _is_named_document(path: bytes) -> bool:
    """Return whether the name rather than the extension marks a file as a document, as with `install` or `version`."""
    return _ending(path[path.rfind(b"/") + 1 :].lower()) not in _BY_ENDING


def _script_kind(path: bytes, data: bytes) -> FileKind | None:
    match = _SHEBANGS.match(data)
    language = _interpreted_language(match[0].decode("ascii", "replace")) if match else None
    return _as_code(path, language) if language else None


def _interpreted_language(lines: str) -> str | None:
    """Return the language of the program that "#!" lines run, directly or through a launcher such as `env`."""
    words = [word.strip("'\"") for word in lines.replace("#!", " ").split()]
    for option, word in pairwise(words):
        if option in _NAMED_OPTIONS and (language := languages.INTERPRETERS.get(_program(word))):
            return language
    for word in words:
        program = _program(word)
        if program in languages.INTERPRETERS:
            return languages.INTERPRETERS[program]
        if not (program in _LAUNCHERS or word.startswith(("-", "+")) or "=" in word):
            return None
    return None


def _program(word: str) -> str:
    match = _PROGRAM.match(word.rpartition("/")[2])
    return match[0].lower() if match else ""


def _as_code(path: bytes, language: str | None) -> FileKind:
    return _code_kind(language, is_test=_is_test(path, language))


@lru_cache
def _code_kind(language: str | None, *, is_test: bool) -> FileKind:
    return FileKind("test" if is_test else "code", language, "code")


def _is_test(path: bytes, language: str | None) -> bool:
    folder, _, name = path.rpartition(b"/")
    stem, dot, ending = name.rpartition(b".")
    pattern = _TEST_NAMES.get(language or "", _OTHER_TEST)
    return (
        _is_test_folder(folder)
        or pattern.fullmatch(stem if dot else ending) is not None
        or dot + ending in _TEST_ENDINGS
    )


@lru_cache(maxsize=4096)
def _is_test_folder(folder: bytes) -> bool:
    parts = folder.lower().split(b"/")
    return not _TEST_FOLDERS.isdisjoint(parts) or any(part.endswith((b".test", b".tests")) for part in parts)


def _ending(lower: bytes) -> bytes:
    """Return the last dot and what follows it; a name such as ".editorconfig" is its own extension."""
    dot = lower.rfind(b".")
    return lower[dot:] if dot >= 0 else b""
