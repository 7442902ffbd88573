"""Measure the size of the package, and show which of its subpackages import which.

    python -m benchmarks.structure            # code lines and modules of each subpackage
    python -m benchmarks.structure --draw     # imports as a Mermaid graph, without transitive arrows

Code lines exclude blank lines, comments and docstrings, but include imports.
"""

import argparse
import ast
import io
import sys
import tokenize
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

PACKAGE = "docindex_dagster"
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(text: str) -> int:
    """Return the number of code lines of a module."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def rooms(root: Path) -> tuple[Counter[str], Counter[str]]:
    """Return code lines and modules of each subpackage; a top-level module counts as one."""
    lines, modules = Counter[str](), Counter[str]()
    for file in root.rglob("*.py"):
        room = file.relative_to(root).parts[0].removesuffix(".py")
        lines[room] += code_lines(file.read_text(encoding="utf-8"))
        modules[room] += 1
    return lines, modules


def known_rooms() -> dict[str, set[str]]:
    """Return the subpackages that each subpackage imports."""
    graph = grimp.build_graph(PACKAGE)
    found: dict[str, set[str]] = {}
    for module in sorted(graph.modules):
        room = _room(module)
        imported = {_room(one) for one in graph.find_modules_directly_imported_by(module)}
        found.setdefault(room, set()).update(imported - {room, PACKAGE})
    del found[PACKAGE]
    return found


def _room(module: str) -> str:
    return module.partition(".")[2].partition(".")[0] or PACKAGE


def drawing(known: dict[str, set[str]]) -> str:
    """Draw the subpackages as a Mermaid graph without transitive arrows.

    Raises:
        CycleError: if subpackages import each other in a cycle.
    """
    reached: dict[str, set[str]] = {}
    for room in TopologicalSorter(known).static_order():
        reached[room] = set().union(*({one} | reached[one] for one in known.get(room, ())))
    lines = ["graph TD"]
    for room, others in known.items():
        through = set().union(*(reached[one] for one in others))
        lines += [f"  {room} --> {other}" for other in sorted(others - through)]
    return "\n".join(lines)


def main() -> None:
    """Print the requested output."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="store_true", help="draw the subpackages as a graph")
    if parser.parse_args().draw:
        sys.stdout.write(drawing(known_rooms()) + "\n")
        return
    lines, modules = rooms(Path(__file__).parent.parent / PACKAGE)
    for room, count in lines.most_common():
        sys.stdout.write(f"{count:6} lines {modules[room]:4} modules  {room}\n")
    sys.stdout.write(f"{lines.total():6} lines {modules.total():4} modules\n")


if __name__ == "__main__":
    main()
