"""What a file of code says about names, from the tree that it was cut by, or from one of its own."""

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


def extracted(blank: Extracted, text: str, parsed: Code | None) -> Extracted:
    """What a file says, or why its structure cannot be had.

    Args:
        blank: of which file it is; why nothing is to be parsed, if nothing is.
        text: what the file holds, without secrets.
        parsed: its code, where it was parsed already.
    """
    if blank.problem is not None:
        return blank
    try:
        code = parsed or code_of(text, blank.language)
        return blank._replace(file_ir=file_ir(code, blank.language, blank.path))
    except Exception as error:  # noqa: BLE001 it costs the file its edges, not the run
        return blank._replace(problem=f"{type(error).__name__}: {error}"[:200])


def code_of(text: str, language: str) -> Code | None:
    """The parsed code of a file in a language; None for a page, template or notebook without any.

    Raises:
        ParseError: there is no grammar for the language.
        ValueError: it is no notebook.
        TypeError: likewise.
    """
    if language != _NOTEBOOK:
        return read_code(text.encode(), language)
    from docindex_dagster.documents.notebook import read_code_cells  # it loads what reads Markdown

    kernel, source, lines = read_code_cells(text)
    language = _KERNELS.get(kernel, kernel)
    if not lines or not has_symbols(language):
        return None
    return parse_embedded(Embedded(language, "\n".join(source).encode(), lines))


def file_ir(code: Code | None, language: str, path: str) -> FileIR:
    """What the code of a file in a language says; None for a file without any."""
    found = FileIR() if code is None else _ir_of(code)
    if code is not None and code.language != language:
        found = replace(found, language=code.language)
    for other in code.others if code is not None else ():
        found = _with_other(found, _ir_of(other))
    return _with_component(found, path) if language in _COMPONENTS else found


def _ir_of(code: Code) -> FileIR:
    found = extract(code.tree, code.language, code.symbols)
    return found if code.lines is None else _on_lines(found, code.lines)


def _on_lines(found: FileIR, lines: Sequence[int]) -> FileIR:
    """The same on the lines of the file: `lines` has those of the lines of its code."""

    def placed(one: Any) -> Any:
        return one._replace(line=lines[one.line - 1]) if hasattr(one, "line") else one

    written: dict[str, Any] = {field.name: getattr(found, field.name) for field in fields(found)}
    changed = {name: tuple(map(placed, each)) for name, each in written.items() if isinstance(each, tuple)}
    return replace(found, **(written | changed))


def _with_other(found: FileIR, other: FileIR) -> FileIR:
    """What a file says, with what code in another language defines, and calls of that."""
    known = {one.id for one in found.definitions}
    new = {one.id: one for one in other.definitions if one.id not in known}
    calls = (one for one in other.calls if isinstance(one.callee, Name) and one.callee.text in new)
    return replace(found, definitions=(*found.definitions, *new.values()), calls=(*found.calls, *calls))


def _component_name(path: str) -> str:
    """The name by which markup uses the component in a file: `ThemePicker` for `theme-picker.vue`."""
    first, *others = PurePosixPath(path).name.partition(".")[0].split("-")
    return "".join(part[:1].upper() + part[1:] for part in (first, *others)) if others else first


def _with_options(found: FileIR) -> FileIR:
    """What a file of a component says, with the methods among its options as functions of the file.

    So they are found by their names in the markup, and as members of `this`.
    """
    names = {one.name for one in found.definitions if one.kind == "method" and not one.parent}
    definitions = (
        one._replace(kind="function") if one.name in names and not one.parent else one for one in found.definitions
    )
    calls = (
        one._replace(callee=Name(one.callee.name))
        if isinstance(one.callee, Attribute) and one.callee.of == THIS and one.callee.name in names
        else one
        for one in found.calls
    )
    return replace(found, definitions=tuple(definitions), calls=tuple(calls))


def _with_component(found: FileIR, path: str) -> FileIR:
    """What a file of a component says, with the component, which has the name of the file and is its default export."""
    found, name = _with_options(found), _component_name(path)
    exports = (*(one for one in found.exports if one.name != _DEFAULT), Export(_DEFAULT, Name(name)))
    if any(one.id == name for one in found.definitions):
        return replace(found, exports=exports)
    component = Definition(name, name, "function", name, "", None, is_local=False, line=1, byte=0)
    return replace(found, definitions=(component, *found.definitions), exports=exports)
