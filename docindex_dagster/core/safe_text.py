"""Text of indexed files, made fit to be shown: it may steer a terminal, hide something, or imitate what we write.

All that is printed for people goes through `visible` or `in_line`, all that is printed as data through `escaped`, or
`escaped_in_xml`.
"""

import re
import shlex
from collections.abc import Collection
from itertools import islice

# Characters of the categories Cc, Cf, Zl, Zp and Cs of Unicode: controls, formats such as overrides of the direction of
# writing and spaces without width, separators of lines, and halves of characters. Ranges, both ends inclusive.
_UNSAFE = (
    *((0x00, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x600, 0x605), (0x61C, 0x61C), (0x6DD, 0x6DD), (0x70F, 0x70F)),
    *((0x890, 0x891), (0x8E2, 0x8E2), (0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F), (0xD800, 0xDFFF)),
    *((0xFEFF, 0xFEFF), (0xFFF0, 0xFFFB), (0x110BD, 0x110BD), (0x110CD, 0x110CD), (0x13430, 0x1343F)),
    *((0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A)),
    # What else fonts may ignore (Default_Ignorable_Code_Point of Unicode), and an empty cell of Braille.
    *((0x34F, 0x34F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2800, 0x2800), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0000, 0xE0FFF)),
)
_KEPT = "\n\t"
_REPLACEMENT = 0xFFFD
_LONGEST_MESSAGE = 4000  # characters: of what fits, nothing is left out
_FIRST_IN_XML, _HALVES = 0x20, range(0xD800, 0xE000)
# An escape of JSON; half a surrogate pair by itself is its group.
_JSON_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)
_HALF = re.compile(r"[\ud800-\udfff]")
_NAMED = 3  # files of those that a sentence is about
_BACKTICKS = re.compile(r"`{3,}")
_ANY_UNSAFE = re.compile("[" + "".join(rf"\U{first:08x}-\U{last:08x}" for first, last in _UNSAFE) + "]")
# Control characters of ASCII are shown as pictures of themselves.
_PICTURES = {chr(code): chr(0x2400 + code) for code in range(32)} | {"\x7f": "\u2421"}


def command(*words: object) -> str:
    """A command to suggest, of which a shell takes each word as it is: a checkout may choose some of them."""
    return f"`{shlex.join(map(str, words))}`"


def well_formed(text: str) -> str:
    """A text whose every character can be encoded: half a surrogate pair, which stands for no text, is replaced."""
    return _HALF.sub("\ufffd", text)


def well_formed_json(json: bytes) -> bytes:
    """JSON whose every escape stands for a character: half a surrogate pair, which does not, is replaced."""
    return _JSON_ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], json)


def fence_around(text: str) -> str:
    """The backticks that fence a text in Markdown: more than any run of them in the text."""
    return "`" * (max(map(len, _BACKTICKS.findall(text)), default=2) + 1)


def visible(text: str) -> str:
    """Text in which each character can be seen, lines and tabs apart; line ends of Windows are plain ones."""
    return _ANY_UNSAFE.sub(
        lambda found: found[0] if found[0] in _KEPT else _shown(found[0]), text.replace("\r\n", "\n")
    )


def in_line(text: str) -> str:
    """A path or name, which may hold any character, in one line; one character stands for each."""
    return _ANY_UNSAFE.sub(lambda found: _shown(found[0]), text)


def shortened(message: str, longest: int = _LONGEST_MESSAGE) -> str:
    """A message that repeats what a user gave, which may be of any length, without its middle where it is long."""
    if len(message) <= longest:
        return message
    half = longest // 2
    return f"{message[:half]} … {message[-half:]}"


def escaped(json: str) -> str:
    """JSON that holds nothing but characters that can be seen, and says the same."""
    return _ANY_UNSAFE.sub(lambda found: found[0] if found[0] == "\n" else _escape(found[0]), json)


def with_reasons(what: str, reasons: Collection[tuple[str, str]], *, are_listed: bool = True) -> str:
    """What is said of some files, with the first ones by name and why, and who lists the others."""
    named = ", ".join(f"{in_line(path)} ({in_line(reason)})" for path, reason in islice(reasons, _NAMED))
    if (more := len(reasons) - _NAMED) > 0:
        named += f" and {more:,} more" + (", which `docindex doctor --json` lists" if are_listed else "")
    return f"{what}: {named}"


def escaped_in_xml(xml: str) -> str:
    """XML that holds nothing but characters that can be seen, and says the same but for controls that XML lacks."""
    return _ANY_UNSAFE.sub(lambda found: _reference(found[0]), xml)


def _shown(character: str) -> str:
    return _PICTURES.get(character, chr(_REPLACEMENT))


def _reference(character: str) -> str:
    """A character reference, or a picture where XML 1.0 (2.2, Char) has no such character."""
    code = ord(character)
    is_representable = (code >= _FIRST_IN_XML or character in "\t\n\r") and code not in _HALVES
    return f"&#x{code:x};" if is_representable else _shown(character)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
