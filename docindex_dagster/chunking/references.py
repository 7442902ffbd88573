"""References of a code file: extraction of definitions, calls and exports, reusing the chunker's tree if possible."""

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import PurePosixPath
from typing import Any

from docindex_dagster.callgraph.ir import THIS, Attribute, Definition, Export, FileIR, Name
from docindex_dagster.callgraph.languages import extract
from docindex_dagster.callgraph.table import Extracted
from docindex_dagster.code.embedded_code import Code, Embedded, parse_embedded, read_code
from docindex_dagster.code.languages import has_symbols

_COMPONENTS = frozenset({"astro", "svelte", "vue"})
_DEFAULT = "default"
_NOTEBOOK = "jupyter"
_KERNELS = {"": "python", "ipython": "python", "sagemath": "python", "c#": "csharp", "c++": "cpp"}


def extract_references(blank: Extracted, text: str, parsed: Code | None) -> Extracted:
    """Return the references of a file, or the reason why its structure is not available.

    Args:
        blank: Identifies the file; its problem, if any, prevents parsing.
        text: The content of the file, without secrets.
        parsed: Its code, if already parsed.
    """
    if blank.problem is not None:
        return blank
    try:
        code = parsed or parse_code(text, blank.language)
        return blank._replace(file_ir=file_ir(code, blank.language, blank.path))
    except Exception as error:  # noqa: BLE001 this affects the edges of one file, not the run
        return blank._replace(problem=f"{type(error).__name__}: {error}"[:200])


def parse_code(text: str, language: str) -> Code | None:
    """Return the parsed code of a file; None for a page, template or notebook without code.

    Raises:
        ParseError: The language has no grammar.
        ValueError: A notebook is not valid JSON.
        TypeError: The JSON of a notebook has another structure.
    """
    if language != _NOTEBOOK:
        return read_code(text.encode(), language)
    from docindex_dagster.documents.notebook import read_code_cells  # imported late: loads the Markdown parser

    kernel, source, lines = read_code_cells(text)
    language = _KERNELS.get(kernel, kernel)
    if not lines or not has_symbols(language):
        return None
    return parse_embedded(Embedded(language, "\n".join(source).encode(), lines))


def file_ir(code: Code | None, language: str, path: str) -> FileIR:
    """Return the intermediate representation of a file's code; empty for a file without code."""
    found = FileIR() if code is None else _ir_of(code)
    if code is not None and code.language != language:
        found = replace(found, language=code.language)
    for other in code.others if code is not None else ():
        found = _with_other(found, _ir_of(other))
    return _with_component(found, path) if language in _COMPONENTS else found


def _ir_of(code: Code) -> FileIR:
    found = extract(code.tree, code.language, code.symbols)
    return found if code.lines is None else _map_lines(found, code.lines)


def _map_lines(found: FileIR, lines: Sequence[int]) -> FileIR:
    """Map the lines of extracted code to lines of the file; `lines` has the file line of each code line."""

    def map_line(item: Any) -> Any:
        return item._replace(line=lines[item.line - 1]) if hasattr(item, "line") else item

    values: dict[str, Any] = {field.name: getattr(found, field.name) for field in fields(found)}
    changed = {name: tuple(map(map_line, each)) for name, each in values.items() if isinstance(each, tuple)}
    return replace(found, **(values | changed))


def _with_other(found: FileIR, other: FileIR) -> FileIR:
    """Add the definitions of code in another language, and the calls of them."""
    known = {definition.id for definition in found.definitions}
    new = {definition.id: definition for definition in other.definitions if definition.id not in known}
    calls = (call for call in other.calls if isinstance(call.callee, Name) and call.callee.text in new)
    return replace(found, definitions=(*found.definitions, *new.values()), calls=(*found.calls, *calls))


def _component_name(path: str) -> str:
    """Return the name under which markup uses a file's component: `ThemePicker` for `theme-picker.vue`."""
    first, *others = PurePosixPath(path).name.partition(".")[0].split("-")
    return "".join(part[:1].upper() + part[1:] for part in (first, *others)) if others else first


def _with_options(found: FileIR) -> FileIR:
    """Turn the methods among a component's options into functions of the file.

    They are then found by name in the markup, and as members of `this`.
    """
    names = {item.name for item in found.definitions if item.kind == "method" and not item.parent}
    definitions = (
        item._replace(kind="function") if item.name in names and not item.parent else item for item in found.definitions
    )
    calls = (
        call._replace(callee=Name(call.callee.name))
        if isinstance(call.callee, Attribute) and call.callee.of == THIS and call.callee.name in names
        else call
        for call in found.calls
    )
    return replace(found, definitions=tuple(definitions), calls=tuple(calls))


def _with_component(found: FileIR, path: str) -> FileIR:
    """Add the component of a file, which is named after the file and is its default export."""
    found, name = _with_options(found), _component_name(path)
    exports = (*(export for export in found.exports if export.name != _DEFAULT), Export(_DEFAULT, Name(name)))
    if any(item.id == name for item in found.definitions):
        return replace(found, exports=exports)
    component = Definition(name, name, "function", name, "", None, is_local=False, line=1, byte=0)
    return replace(found, definitions=(component, *found.definitions), exports=exports)
