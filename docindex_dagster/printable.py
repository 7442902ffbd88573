"""Text of indexed files, made fit to be shown: it may steer a terminal, or imitate what we write."""

# Control characters are shown as pictures of themselves.
_VISIBLE = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {0x7F: 0x2421}
_VISIBLE |= dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
_IN_LINE = _VISIBLE | {ord("\n"): 0x240A, ord("\t"): 0x2409, 0x2028: 0xFFFD, 0x2029: 0xFFFD}


def visible(text: str) -> str:
    """Text without control characters; line ends of Windows are plain ones."""
    return text.replace("\r\n", "\n").translate(_VISIBLE)


def in_line(text: str) -> str:
    """A path or name, which may hold any character, in one line."""
    return text.translate(_IN_LINE)
