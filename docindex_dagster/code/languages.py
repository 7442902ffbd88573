"""Supported languages, with their grammars and queries.

Names are lower case and match `discovered_files.language`. A language that is missing here has no usable grammar
(`batch` has none; the one for `cobol` never returns), so its files are chunked as text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Language:
    """The grammar and queries of a language."""

    grammar: str  # its name in tree-sitter-language-pack
    queries: tuple[str, ...] = ()  # files in `queries/`, without `.scm`, that find symbols and imports


_WITH_SYMBOLS = {
    "bash": Language("bash", ("bash",)),
    "c": Language("c", ("c",)),
    "cpp": Language("cpp", ("cpp", "c")),
    "csharp": Language("csharp", ("csharp",)),
    "elixir": Language("elixir", ("elixir",)),
    "go": Language("go", ("go",)),
    "haskell": Language("haskell", ("haskell",)),
    "java": Language("java", ("java",)),
    "javascript": Language("javascript", ("ecmascript", "javascript", "jsx")),
    "kotlin": Language("kotlin", ("kotlin",)),
    "lua": Language("lua", ("lua",)),
    "php": Language("php", ("php",)),
    "python": Language("python", ("python",)),
    "ruby": Language("ruby", ("ruby",)),
    "rust": Language("rust", ("rust",)),
    "scala": Language("scala", ("scala",)),
    "sql": Language("sql", ("sql",)),
    "swift": Language("swift", ("swift",)),
    "tsx": Language("tsx", ("ecmascript", "typescript", "jsx")),
    "typescript": Language("typescript", ("ecmascript", "typescript")),
    "zig": Language("zig", ("zig",)),
}

_SAME_NAME = """
    actionscript ada agda apex arduino asm astro bicep cairo capnp clojure cmake commonlisp css cuda d dart
    dockerfile elisp elm erlang fennel fish fortran fsharp gdscript gleam glsl graphql groovy hack hare haxe hcl
    hlsl html ini janet json jsonnet julia kdl latex llvm luau make matlab meson ninja nim nix objc ocaml odin
    pascal perl powershell prisma properties proto puppet purescript r racket rego ron scheme scss smithy solidity
    sparql squirrel starlark svelte tcl terraform thrift toml twig typst v verilog vhdl vim vue wat wgsl xml yaml
"""

_OTHER_NAMES = {
    "ejs": Language("embeddedtemplate"),
    "embeddedtemplate": Language("embeddedtemplate"),
    "razor": Language("html"),
}

HOSTS: Mapping[str, str] = MappingProxyType(
    {
        "astro": "typescript",
        "ejs": "javascript",
        "embeddedtemplate": "ruby",
        "html": "javascript",
        "jupyter": "python",
        "php": "php",
        "razor": "csharp",
        "svelte": "typescript",
        "vue": "typescript",
    }
)
"""Languages whose files embed code in other languages, mapped to the main embedded one; see `embedded_code.py`."""

LANGUAGES: Mapping[str, Language] = MappingProxyType(
    {name: Language(name) for name in _SAME_NAME.split()} | _OTHER_NAMES | _WITH_SYMBOLS
)


def grammar_for(language: str) -> str | None:
    """Return the grammar name in tree-sitter-language-pack, or None if files can only be chunked as text."""
    known = LANGUAGES.get(language)
    return known.grammar if known else None


def has_symbols(language: str) -> bool:
    """Return whether symbols and imports can be extracted from code in this language."""
    known = LANGUAGES.get(language)
    return bool(known and known.queries)


def can_contain_symbols(language: str) -> bool:
    """Return whether symbols and imports can be extracted from files in this language or from code embedded in them."""
    return language in HOSTS or has_symbols(language)
