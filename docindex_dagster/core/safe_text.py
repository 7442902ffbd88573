"""Safe output of untrusted text, which may control a terminal, hide content, or imitate docindex's own output.

Output for people goes through `visible` or `in_line`, and output as data through `escaped` or `escaped_in_xml`.
"""

import re
import shlex
from collections.abc import Collection
from itertools import islice

# Unicode categories Cc, Cf, Zl, Zp and Cs: control characters, format characters such as bidi overrides and zero-width
# spaces, line and paragraph separators, and surrogates. Ranges with inclusive ends.
_UNSAFE = (
    *((0x00, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x600, 0x605), (0x61C, 0x61C), (0x6DD, 0x6DD), (0x70F, 0x70F)),
    *((0x890, 0x891), (0x8E2, 0x8E2), (0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F), (0xD800, 0xDFFF)),
    *((0xFEFF, 0xFEFF), (0xFFF0, 0xFFFB), (0x110BD, 0x110BD), (0x110CD, 0x110CD), (0x13430, 0x1343F)),
    *((0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A)),
    # Other characters that fonts may ignore (Unicode's Default_Ignorable_Code_Point), and the empty Braille cell.
    *((0x34F, 0x34F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2800, 0x2800), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0000, 0xE0FFF)),
)
_KEPT = "\n\t"
_REPLACEMENT = 0xFFFD
_MAX_MESSAGE_CHARS = 4000
_FIRST_IN_XML, _SURROGATES = 0x20, range(0xD800, 0xE000)
# A JSON escape; the group captures a lone surrogate.
_JSON_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_MAX_NAMED = 3  # files that a message names
_BACKTICKS = re.compile(r"`{3,}")
_ANY_UNSAFE = re.compile("[" + "".join(rf"\U{first:08x}-\U{last:08x}" for first, last in _UNSAFE) + "]")
# ASCII control characters are shown as Unicode control pictures.
_PICTURES = {chr(code): chr(0x2400 + code) for code in range(32)} | {"\x7f": "\u2421"}


def command(*words: object) -> str:
    """Return a command to suggest to the user, quoted for the shell, since a checkout may control some of its words."""
    return f"`{shlex.join(map(str, words))}`"


def well_formed(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded."""
    return _SURROGATE.sub("\ufffd", text)


def well_formed_json(json: bytes) -> bytes:
    """Replace escapes of lone surrogates in JSON."""
    return _JSON_ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], json)


def fence_around(text: str) -> str:
    """Return a Markdown fence for a text: more backticks than any run of them in it."""
    return "`" * (max(map(len, _BACKTICKS.findall(text)), default=2) + 1)


def make_visible(text: str) -> str:
    """Make every character of a text visible, except newlines and tabs. Normalizes Windows line endings."""
    return _ANY_UNSAFE.sub(
        lambda found: found[0] if found[0] in _KEPT else _shown(found[0]), text.replace("\r\n", "\n")
    )


def on_one_line(text: str) -> str:
    """Make every character of a path or name visible, on one line. Replaces characters one for one."""
    return _ANY_UNSAFE.sub(lambda found: _shown(found[0]), text)


def truncate_middle(message: str, longest: int = _MAX_MESSAGE_CHARS) -> str:
    """Cut the middle out of a long message, for messages that repeat user input of any length."""
    if len(message) <= longest:
        return message
    half = longest // 2
    return f"{message[:half]} … {message[-half:]}"


def escape_json(json: str) -> str:
    """Escape every invisible character in JSON, without changing its meaning."""
    return _ANY_UNSAFE.sub(lambda found: found[0] if found[0] == "\n" else _escape(found[0]), json)


def with_reasons(what: str, reasons: Collection[tuple[str, str]], *, are_listed: bool = True) -> str:
    """Return a message about several files that names the first ones with their reasons."""
    named = ", ".join(f"{on_one_line(path)} ({on_one_line(reason)})" for path, reason in islice(reasons, _MAX_NAMED))
    if (more := len(reasons) - _MAX_NAMED) > 0:
        named += f" and {more:,} more" + ("; list them with `docindex doctor --json`" if are_listed else "")
    return f"{what}: {named}"


def escape_xml(xml: str) -> str:
    """Escape every invisible character in XML, without changing its meaning, except for controls that XML lacks."""
    return _ANY_UNSAFE.sub(lambda found: _reference(found[0]), xml)


def _shown(character: str) -> str:
    return _PICTURES.get(character, chr(_REPLACEMENT))


def _reference(character: str) -> str:
    """Return a character reference, or a control picture if XML 1.0 (2.2, Char) does not allow the character."""
    code = ord(character)
    is_representable = (code >= _FIRST_IN_XML or character in "\t\n\r") and code not in _SURROGATES
    return f"&#x{code:x};" if is_representable else _shown(character)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
