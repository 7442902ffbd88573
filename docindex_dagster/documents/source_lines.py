"""Finds the lines of transformed text in the file that it comes from."""

_NEAR = 20_000  # characters


class SourceLines:
    """A forward search for text in a file.

    Parsers of HTML and JSON keep no positions. So each text is searched from where the one before it was found; one
    that is not found is taken to stand on the last line that was.
    """

    def __init__(self, source: str, start: int = 0) -> None:
        self._source = source
        self._position = max(start, 0)
        self._line = 1 + source.count("\n", 0, self._position)

    @property
    def position(self) -> int:
        """Where the last text was found."""
        return self._position

    def line_behind(self, position: int, text: str) -> int | None:
        """The line of a text that stands not far behind a former position; the search goes on from where it was."""
        found = self._source.find(text, position, position + _NEAR)
        if found < self._position:
            return None if found == -1 else self._line - self._source.count("\n", found, self._position)
        return self._line + self._source.count("\n", self._position, found)

    def line_of(self, text: str) -> int:
        """The line, 1-based, on which `text` stands next; `text` has no line ends."""
        found = self._source.find(text, self._position) if text else -1
        if found != -1:
            self._line += self._source.count("\n", self._position, found)
            self._position = found
        return self._line
