"""Reference page of the command line."""

import inspect
from collections.abc import Iterator
from typing import Any

from tests.reference.commands import root, subcommands
from tests.reference.markdown import sentence, table

_ABOUT = """\
# Command line

Every command prints this text with `--help`. Exit codes: 0 for success, 1 if a command fails or finds nothing, and 2
for usage errors.
"""


def page() -> str:
    """Return the page."""
    command = root()
    listed = table(
        ("command", "purpose"),
        (
            (f"[`docindex {name}`](#{_anchor(f'docindex {name}')})", _first_line(found))
            for name, found in subcommands(command)
        ),
    )
    return "\n".join([_ABOUT, listed, *_describe("docindex", command)])


def _describe(name: str, command: Any) -> Iterator[str]:
    context = command.make_context(name, [], resilient_parsing=True)
    yield f"## {name}\n"
    if text := inspect.cleandoc(command.help or ""):
        yield text + "\n"
    yield f"```text\n{' '.join([name, *command.collect_usage_pieces(context)])}\n```\n"
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    if listed := table(("argument", "meaning"), ((f"`{each.name}`", _help(each)) for each in arguments)):
        yield listed
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    rows = ((_names(each, context), _default(each), _help(each)) for each in options if each.name != "help")
    if listed := table(("option", "default", "meaning"), rows):
        yield listed
    for child, found in subcommands(command):
        yield from _describe(f"{name} {child}", found)


def _names(option: Any, context: Any) -> str:
    value = "" if option.is_flag else f" {option.metavar or option.display_type(context).strip('<>').upper()}"
    return ", ".join(f"`{name}{value}`" for name in (*option.opts, *option.secondary_opts))


def _default(option: Any) -> str:
    default = None if callable(option.default) else option.default
    return f"`{getattr(default, 'value', default)}`" if default not in (None, False, (), [], "") else ""


def _help(parameter: Any) -> str:
    return sentence(parameter.help or "")


def _first_line(command: Any) -> str:
    return sentence(inspect.cleandoc(command.help or "").split("\n\n")[0])


def _anchor(heading: str) -> str:
    return heading.replace(" ", "-")
