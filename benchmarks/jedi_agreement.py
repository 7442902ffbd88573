"""Compare calls with those that Jedi infers.

    python -m benchmarks.jedi_agreement FOLDER... [--differences N]

Both are compared as pairs of caller and callee within a Python project. Requires `pip install jedi`.
"""

import argparse
import ast
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.extract.file import symbol_ids
from tests.graph.built import build_graph
from tests.graph.calls import chunks_of

_Pair = tuple[str, str]
_OUTSIDE = ("external", "unresolved")


class Symbols:
    """The symbols of a project's files, by line."""

    def __init__(self, chunks: pa.Table) -> None:
        self.by_path: dict[str, list[tuple[int, int, str, str]]] = {}
        for row in chunks.select(["path", "symbols"]).to_pylist():
            self.by_path.setdefault(row["path"], []).extend(
                (one["start_line"], one["end_line"], one["qualified_name"], one["kind"]) for one in row["symbols"] or ()
            )

    def at(self, path: str, line: int) -> str:
        """Return the node of the innermost function or class at a line, or of the file."""
        listed = self.by_path.get(path, [])
        ids = symbol_ids([qualified for _, _, qualified, _ in listed])
        around = [
            (end - start, identifier)
            for (start, end, _, kind), identifier in zip(listed, ids, strict=True)
            if start <= line <= end and kind in {"function", "method", "class"}
        ]
        return f"{path}::{min(around)[1]}" if around else path


def main() -> None:
    """Print the agreement, and differences to judge by hand."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--differences", type=int, default=0, help="Print N random differences.")
    arguments = parser.parse_args()
    print(f"{'project':<12}{'both':>7}{'only docindex':>15}{'only Jedi':>11}{'agreement':>11}")
    for folder in arguments.folders:
        chunks = chunks_of(folder)
        ours, theirs = _ours(chunks), _theirs(folder, chunks)
        both = ours.keys() & theirs.keys()
        union = ours.keys() | theirs.keys()
        print(
            f"{folder.name:<12}{len(both):>7}{len(ours.keys() - both):>15}{len(theirs.keys() - both):>11}"
            f"{len(both) / max(1, len(union)):>11.1%}"
        )
        for pair in random.Random(0).sample(sorted(union - both), min(arguments.differences, len(union - both))):
            who, line = ("docindex", ours[pair]) if pair in ours else ("Jedi", theirs[pair])
            print(f"  {who} {line}: {pair[0]} -> {pair[1]}")


def _ours(chunks: pa.Table) -> dict[_Pair, str]:
    triples = build_graph(chunks).triples
    calls = triples.filter(pc.and_(pc.equal(triples["predicate"], "calls"), pc.match_substring(triples["path"], ".py")))
    return {
        (_plain(row["subject"]), _plain(row["object"])): f"{row['path']}:{row['line']} ({row['resolution']})"
        for row in calls.to_pylist()
        if row["object_type"] not in _OUTSIDE
    }


def _theirs(folder: Path, chunks: pa.Table) -> dict[_Pair, str]:
    import jedi

    # The project precedes installed packages, which may include another version of it.
    paths = [str(folder / "src"), str(folder), *jedi.get_default_environment().get_sys_path()]
    project = jedi.Project(folder, sys_path=paths)
    symbols = Symbols(chunks)
    found: dict[_Pair, str] = {}
    for path in sorted(path for path in symbols.by_path if path.endswith(".py")):
        text = (folder / path).read_text("utf-8")
        for line, column, holder in _callees(ast.parse(text)):
            caller = symbols.at(path, holder) if holder else path
            # A new script for each call: Jedi infers the result of a fixture only once per script.
            script = jedi.Script(text, path=folder / path, project=project)
            for definition in _inferred(script, line, column):
                target = definition.module_path
                if target is None or not target.is_relative_to(folder) or definition.type not in {"function", "class"}:
                    continue
                callee = symbols.at(target.relative_to(folder).as_posix(), definition.line)
                pair = _plain(caller), _plain(callee)
                found.setdefault(pair, f"{path}:{line}")
    return found


def _inferred(script: Any, line: int, column: int) -> list[Any]:
    try:
        return [*script.infer(line, column)]
    except Exception:  # noqa: BLE001 Jedi fails on some code
        return []


def _callees(node: ast.AST, holder: int = 0) -> Iterator[tuple[int, int, int]]:
    """Yield the position of each callee's last name, and the line of the function or class whose body calls it, or 0.

    Decorators (which are calls), defaults and bases are evaluated in the scope around a definition.
    """
    called: Sequence[ast.AST] = [node.func] if isinstance(node, ast.Call) else ()
    body: Sequence[ast.AST] = ()
    line = holder
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        called, body, line = node.decorator_list, node.body, node.lineno
    for function in called:
        if isinstance(function, ast.Name):
            yield function.lineno, function.col_offset, holder
        elif isinstance(function, ast.Attribute) and function.end_lineno and function.end_col_offset:
            yield function.end_lineno, function.end_col_offset - 1, holder
    for inner in ast.iter_child_nodes(node):
        yield from _callees(inner, line if inner in body else holder)


def _plain(node: str) -> str:
    """Return a node without its number among equal names; a constructor becomes its class."""
    plain = node.partition("~")[0]
    return plain.removesuffix(".__init__")


if __name__ == "__main__":
    main()
