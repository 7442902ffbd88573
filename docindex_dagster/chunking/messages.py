"""Messages: mails, chat logs, minutes. They have no headings, and their text is sentences.

A chunk ends where a sentence does, and begins with the last sentences of the one before.
"""

from dataclasses import replace

from docindex_dagster.chunking.chunker import ChunkOptions, SourceFile
from docindex_dagster.chunking.documents import cut_document
from docindex_dagster.chunking.draft import FileDrafts
from docindex_dagster.chunking.split import SENTENCE_END, Sizes
from docindex_dagster.core.tokenizer import count_tokens
from docindex_dagster.documents.model import Document
from docindex_dagster.documents.outline import build_sections
from docindex_dagster.documents.spans import Mark, tile

# Smaller than those of documents: a message says one thing, in a few sentences.
SIZES = Sizes(target=256, overlap=32, maximum=256, minimum=0)


def chunk_messages(file: SourceFile, _options: ChunkOptions, /) -> FileDrafts:
    """Cut a file of messages at the ends of sentences; a sentence that is too long, at lines, then at characters."""
    marks = [Mark(0, "prose"), *(Mark(end.end(), "prose") for end in SENTENCE_END.finditer(file.text))]
    sentences = tile(file.text, [mark for mark in marks if mark.offset < len(file.text)])
    document = Document(title=None, sections=build_sections(sentences), structured=False)
    found = cut_document(document, file.path, SIZES, count_tokens)
    return replace(found, drafts=tuple(replace(draft, chunk_type="message") for draft in found.drafts))
