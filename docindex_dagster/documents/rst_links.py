"""The links of a tree that docutils reads, and the labels in it."""

from collections.abc import Iterator
from typing import Any

from docindex_dagster.documents.model import Pointer, PointerKind

# Set by our parser: an address, a label.
_ATTRIBUTES: dict[str, PointerKind] = {"docindex_link": "link", "docindex_ref": "ref"}
_LEADING = frozenset(["inline", "reference"])
_HOLDERS = frozenset(["line_block", "table"])  # blocks whose text is in other nodes
_MOST_STEPS = 10  # from one name of an address to the next


class Links:
    """Tells where the references in one tree lead. Those without a name are to be asked for in their order."""

    def __init__(self, tree: Any) -> None:
        self._tree = tree
        self._unnamed = tree.findall(lambda node: node.tagname == "target" and node.get("anonymous"))

    def labels(self, node: Any, line: int) -> Iterator[Pointer]:
        """The names of a target that stands before what it names."""
        if node.tagname == "target" and "refuri" not in node and "refname" not in node:
            for name in node["names"]:
                yield Pointer("label", name, node.line or line)

    def of(self, block: Any, end_line: int) -> Iterator[Pointer]:
        """The links in a block that ends on a line."""
        from docutils import nodes

        if block.tagname in _HOLDERS:
            for part in block.findall(nodes.TextElement):
                if not isinstance(part, nodes.Inline):
                    yield from self._in_text(part, part.line or block.line or end_line)
        else:
            yield from self._in_text(block, end_line - block.rawsource.rstrip().count("\n"))

    def _in_text(self, text: Any, line: int) -> Iterator[Pointer]:
        for part in text.children:
            if part.tagname == "#text":
                line += part.count("\n")
                continue
            pointer = self._pointer(part, line) if part.tagname in _LEADING else None
            if pointer:
                yield pointer
            if part.tagname != "target":  # the address in a reference is part of that
                line += part.rawsource.count("\n")

    def _pointer(self, reference: Any, line: int) -> Pointer | None:
        for attribute, kind in _ATTRIBUTES.items():
            if attribute in reference:
                return Pointer(kind, " ".join(reference[attribute].split()), line)
        if reference.tagname == "inline":
            return None
        if reference.get("anonymous"):
            reference = next(self._unnamed, reference)
        for _ in range(_MOST_STEPS):
            if "refuri" in reference:
                return Pointer("link", reference["refuri"], line)
            name = reference.get("refname")
            target = self._tree.ids.get(self._tree.nameids.get(name))
            if target is None:
                return Pointer("ref", name, line) if name else None
            if "refuri" not in target and "refname" not in target:
                return Pointer("link", f"#{name}", line)
            reference = target
        return None
