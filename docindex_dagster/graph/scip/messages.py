"""The messages of SCIP that are read and written here, made when the program runs.

They are a part of `scip.proto` of https://github.com/sourcegraph/scip (Apache-2.0), with the same names, numbers and
types of fields. What is left out, such as diagnostics, is passed over by Protocol Buffers when a file is read.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

# Type and name of each field, by message and number. What begins with a capital letter is a message; `*` says many.
_FIELDS: Mapping[str, Mapping[int, str]] = {
    "Index": {1: "Metadata metadata", 2: "Document* documents", 3: "SymbolInformation* external_symbols"},
    "Metadata": {
        1: "int32 version",
        2: "ToolInfo tool_info",
        3: "string project_root",
        4: "int32 text_document_encoding",
    },
    "ToolInfo": {1: "string name", 2: "string version", 3: "string* arguments"},
    "Document": {
        1: "string relative_path",
        2: "Occurrence* occurrences",
        3: "SymbolInformation* symbols",
        4: "string language",
        5: "string text",
        6: "int32 position_encoding",
    },
    "Occurrence": {
        1: "int32* range",
        2: "string symbol",
        3: "int32 symbol_roles",
        7: "int32* enclosing_range",
    },
    "SymbolInformation": {
        1: "string symbol",
        3: "string* documentation",
        4: "Relationship* relationships",
        5: "int32 kind",
        6: "string display_name",
        8: "string enclosing_symbol",
    },
    "Relationship": {
        1: "string symbol",
        2: "bool is_reference",
        3: "bool is_implementation",
        4: "bool is_type_definition",
        5: "bool is_definition",
    },
}

DEFINITION = 1
"""The role of an occurrence that defines its symbol; roles are bits."""

UTF8_TEXT = 1
"""How files are encoded (`text_document_encoding`)."""

UTF8, UTF16, UTF32 = 1, 2, 3
"""What columns count: bytes, units of UTF-16, or characters (`position_encoding`)."""


@cache
def index_message() -> Any:
    """The class of the message that a file of SCIP holds."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="docindex/scip.proto", package="scip", syntax="proto3")
    types = descriptor_pb2.FieldDescriptorProto
    scalars = {"int32": types.TYPE_INT32, "string": types.TYPE_STRING, "bool": types.TYPE_BOOL}
    for message, fields in _FIELDS.items():
        described = file.message_type.add(name=message)
        for number, field in fields.items():
            kind, name = field.split()
            label = types.LABEL_REPEATED if kind.endswith("*") else types.LABEL_OPTIONAL
            kind = kind.removesuffix("*")
            added = described.field.add(name=name, number=number, label=label)
            if kind in scalars:
                added.type = scalars[kind]
            else:
                added.type, added.type_name = types.TYPE_MESSAGE, f".scip.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("scip.Index"))
