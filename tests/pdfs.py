"""Hand-written PDFs: pages of lines with sizes and positions, an outline, and any other objects a test adds."""

import zlib
from collections.abc import Iterable, Mapping, Sequence

Line = tuple[str, float, float]  # text, font size, height above the bottom of the page

_ESCAPES = str.maketrans({char: f"\\{char}" for char in "()\\"})
BODY = "The pump moves water from the well to the tank."


def page(*lines: Line) -> bytes:
    """Return the content stream of a page."""
    drawn = (
        f"BT /F1 {size} Tf 1 0 0 1 72 {height} Tm ({text.translate(_ESCAPES)}) Tj ET" for text, size, height in lines
    )
    return "\n".join(drawn).encode("latin-1")


def text_page(title: str, *lines: str, size: float = 18, top: str = "", bottom: str = "") -> bytes:
    """Return a page with a title, lines of text below it, and text in its margins."""
    margin = [(top, 8.0, 800.0)] if top else []
    body = [(line, 10.0, 700.0 - 12 * at) for at, line in enumerate(lines)]
    end = [(bottom, 8.0, 40.0)] if bottom else []
    return page(*margin, (title, size, 740.0), *body, *end)


def pdf(
    pages: Sequence[bytes], outline: Iterable[tuple[str, int]] = (), more: Mapping[int, bytes] | None = None
) -> bytes:
    """Return a PDF of these pages, whose outline maps titles to pages; `more` replaces or adds objects by number.

    Object 1 is the catalogue, 2 the page tree, 3 the font, 4 the outline. Outline entries, pages and content streams
    follow.
    """
    entries = [*outline]
    first = 5 + len(entries)
    numbers = range(first, first + 2 * len(pages), 2)
    objects: dict[int, bytes] = {
        1: b"<</Type/Catalog/Pages 2 0 R" + (b"/Outlines 4 0 R>>" if entries else b">>"),
        2: f"<</Type/Pages/Count {len(pages)}/Kids[{' '.join(f'{n} 0 R' for n in numbers)}]>>".encode(),
        3: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        4: f"<</Type/Outlines/First 5 0 R/Last {first - 1} 0 R/Count {len(entries)}>>".encode(),
    }
    for at, (title, target) in enumerate(entries, start=5):
        after = f"/Next {at + 1} 0 R" if at + 1 < first else ""
        objects[at] = f"<</Title({title})/Parent 4 0 R{after}/Dest[{numbers[target]} 0 R/XYZ 72 760 0]>>".encode()
    for number, drawn in zip(numbers, pages, strict=True):
        objects[number] = (
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>>>"
            f"/Contents {number + 1} 0 R>>"
        ).encode()
        objects[number + 1] = stream(drawn)
    return written({**objects, **(more or {})})


def stream(data: bytes, about: bytes = b"") -> bytes:
    """Return a stream; `about` holds further entries of its dictionary."""
    return b"<</Length %d%b>>stream\n%b\nendstream" % (len(data), about, data)


def bomb(size: int) -> bytes:
    """Return a doubly compressed stream of a few hundred bytes that expands to `size` bytes."""
    packer = zlib.compressobj(9)
    block = b" " * (1 << 20)
    data = b"".join(packer.compress(block) for _ in range(size >> 20)) + packer.flush()
    return stream(zlib.compress(data, 9), b"/Filter[/FlateDecode/FlateDecode]")


def written(objects: Mapping[int, bytes], trailer: bytes = b"") -> bytes:
    """Return a file of objects with its cross-reference table."""
    data, places = b"%PDF-1.7\n", {}
    for number, content in sorted(objects.items()):
        places[number] = len(data)
        data += b"%d 0 obj%b\nendobj\n" % (number, content)
    size = max(objects) + 1
    rows = [b"%010d 00000 n \n" % places[n] if n in places else b"0000000000 65535 f \n" for n in range(size)]
    table = b"xref\n0 %d\n%b" % (size, b"".join(rows))
    return data + table + b"trailer<</Size %d/Root 1 0 R%b>>\nstartxref\n%d\n%%%%EOF\n" % (size, trailer, len(data))


def _deep(depth: int) -> dict[int, bytes]:
    return {
        2: b"<</Type/Pages/Count 1/Kids[100 0 R]>>",
        **{100 + at: b"<</Type/Pages/Count 1/Kids[%d 0 R]>>" % (101 + at) for at in range(depth)},
    }


ONE = [text_page("Pumps", BODY)]
GOOD = pdf(ONE)
# Damaged and malicious files, by what is wrong with them.
HOSTILE: dict[str, bytes] = {
    "cut": GOOD[: len(GOOD) // 3],
    "header-alone": b"%PDF-1.7\n",
    "no-table": GOOD[: GOOD.index(b"xref")],
    "bomb": pdf(ONE, more={6: bomb(256 << 20)}),
    "endless-loop": pdf(ONE, more={6: stream(b"BT " + b"/F1 10 Tf (x) Tj " * 100_000 + b"ET")}),
    "outline-in-a-circle": pdf(ONE, [("a", 0), ("b", 0)], {6: b"<</Title(b)/Parent 4 0 R/Next 5 0 R/First 4 0 R>>"}),
    "pages-in-a-circle": pdf(ONE, more={2: b"<</Type/Pages/Count 9/Kids[2 0 R 2 0 R]>>"}),
    "pages-too-deep": pdf(ONE, more=_deep(5_000)),
    "page-again-and-again": pdf(ONE, more={2: b"<</Type/Pages/Count 99999/Kids[%b]>>" % (b"5 0 R " * 99_999)}),
    "count-is-a-lie": pdf(ONE, more={2: b"<</Type/Pages/Count 2000000000/Kids[5 0 R]>>"}),
    "form-in-itself": pdf(
        [b"/X Do"],
        more={
            5: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Resources<</XObject<</X 7 0 R>>>>/Contents 6 0 R>>",
            7: stream(b"/X Do /X Do", b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 7 0 R>>>>"),
        },
    ),
    "object-leads-to-itself": pdf(ONE, more={6: b"6 0 R"}),
    "nested-arrays": pdf(ONE, more={7: b"[" * 100_000}),
    "dictionary-without-end": GOOD.replace(b"/Helvetica", b"/" + b"<<" * 20_000),
    "huge-numbers": pdf([b"BT /F1 1e38 Tf 1e38 0 0 1e38 1e38 1e38 Tm (x) Tj 9" + b"9" * 50_000 + b" 0 Td (y) Tj ET"]),
}
