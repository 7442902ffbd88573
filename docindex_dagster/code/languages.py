"""The languages that can be parsed: one table from our names to the grammars and queries that read them.

Our names are lower case and are those of `discovered_files.language`. A language that is not here has no usable grammar
(`batch` has none; `cobol` has one that never returns) and its files are cut as text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Language:
    """How one language is read."""

    grammar: str  # its name in tree-sitter-language-pack
    queries: tuple[str, ...] = ()  # the files of `queries/`, without `.scm`, that find its symbols and imports


_WITH_SYMBOLS = {
    "c": Language("c", ("c",)),
    "cpp": Language("cpp", ("cpp", "c")),
    "csharp": Language("csharp", ("csharp",)),
    "go": Language("go", ("go",)),
    "java": Language("java", ("java",)),
    "javascript": Language("javascript", ("ecmascript", "javascript")),
    "php": Language("php", ("php",)),
    "python": Language("python", ("python",)),
    "ruby": Language("ruby", ("ruby",)),
    "rust": Language("rust", ("rust",)),
    "tsx": Language("tsx", ("ecmascript", "typescript")),
    "typescript": Language("typescript", ("ecmascript", "typescript")),
}

_SAME_NAME = """
    actionscript ada agda apex arduino asm astro bash bicep cairo capnp clojure cmake commonlisp css cuda d dart
    dockerfile elisp elixir elm erlang fennel fish fortran fsharp gdscript gleam glsl graphql groovy hack hare haskell
    haxe hcl hlsl html ini janet json jsonnet julia kdl kotlin latex llvm lua luau make matlab meson ninja nim nix objc
    ocaml odin pascal perl powershell prisma properties proto puppet purescript r racket rego ron scala scheme scss
    smithy solidity sparql sql squirrel starlark svelte swift tcl terraform thrift toml twig typst v verilog vhdl vim
    vue wat wgsl xml yaml zig
"""

LANGUAGES: Mapping[str, Language] = MappingProxyType(
    {name: Language(name) for name in _SAME_NAME.split()} | _WITH_SYMBOLS
)


def grammar_for(language: str) -> str | None:
    """The name of a language's grammar in tree-sitter-language-pack, or None: its files can only be cut as text."""
    known = LANGUAGES.get(language)
    return known.grammar if known else None


def has_symbols(language: str) -> bool:
    """Whether symbols and imports can be read from files in this language."""
    known = LANGUAGES.get(language)
    return bool(known and known.queries)
