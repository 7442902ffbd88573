"""What `make docs` adds to the pages in docs/: those that lie elsewhere, files that pages link to, and the references.

Links are written for a reader of the repository, and lead to the same things on the site.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from posixpath import dirname, normpath, relpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docindex_dagster.serving.http.app import build_api
from docindex_dagster.serving.http.openai_form import code_of
from docindex_dagster.serving.http.problems import ANYWHERE

ROOT = Path(__file__).parent
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/jedi_differences.md": "jedi_differences.md",
    "benchmarks/scip_differences.md": "scip_differences.md",
}
"""The pages that lie outside of docs/, and where the site has them."""
REFERENCE = (
    "docindex_dagster.api",
    "docindex_dagster.search.model",
    "docindex_dagster.core.errors",
    "docindex_dagster.pipeline.stage",
    "docindex_dagster.pipeline.source_run",
    "docindex_dagster.embedding.protocol",
    "docindex_dagster.chunking.chunker",
    "docindex_dagster.llm.protocol",
    "docindex_dagster.graph.concepts.extractor",
    "docindex_dagster.search.reranking.protocol",
)
"""The modules whose docstrings are the reference."""
_ANYWHERE = frozenset({*ANYWHERE, *map(code_of, ANYWHERE)})

_Described = Mapping[str, Any]
_ABOUT_API = """\
# API

Made from the description that `docindex serve` gives at `/openapi.json`. [Serving](serving.md) says how to start it,
what all answers have in common, and what each problem means. The problems that any request may meet are not repeated
here: {}.
"""
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lies outside of docs/."""
    for source, place in PAGES.items():
        files.append(File.generated(config, place, content=_relinked((ROOT / source).read_text("utf-8"), source)))
    for source in sorted(set(_linked_files())):
        files.append(File.generated(config, _place(source), content=(ROOT / source).read_bytes()))
    modules = "\n\n".join(f"::: {module}" for module in REFERENCE)
    files.append(File.generated(config, "reference.md", content=f"# Reference\n\n{modules}\n"))
    files.append(File.generated(config, "api.md", content=_api(build_api().openapi())))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Let the links of a page of docs/ lead to the places on the site."""
    source = f"docs/{page.file.src_uri}"
    return _relinked(markdown, source) if page.file.generated_by is None else markdown


def _linked_files() -> Iterator[str]:
    """What pages link to that is no page, and no file of docs/."""
    for source in (*PAGES, *(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))):
        for link in _LINK.findall((ROOT / source).read_text("utf-8")):
            target = normpath(f"{dirname(source)}/{link}").removeprefix("/")
            if target not in PAGES and not target.startswith("docs/") and (ROOT / target).is_file():
                yield target


def _relinked(markdown: str, source: str) -> str:
    """The text of a page of the repository, with links from its place on the site."""

    def link(found: re.Match[str]) -> str:
        target = normpath(f"{dirname(source)}/{found[1]}").removeprefix("/")
        return relpath(_place(target), dirname(_place(source)) or ".")

    return _LINK.sub(link, markdown)


def _place(path: str) -> str:
    """Where the site has a file of the repository."""
    return PAGES.get(path, path.removeprefix("docs/"))


def _api(description: _Described) -> str:
    """The API's reference: each operation with its parameters and answers, then what their bodies consist of."""
    anywhere = ", ".join(f"`{name}`" for name in ANYWHERE)
    return "\n".join([_ABOUT_API.format(anywhere), *_operations(description), "## Bodies\n", *_schemas(description)])


def _operations(description: _Described) -> Iterator[str]:
    by_tag: dict[str, list[str]] = {}
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            text = "\n".join(_operation(method.upper(), path, operation))
            by_tag.setdefault(operation["tags"][0], []).append(text)
    for tag, texts in by_tag.items():
        yield f"## {tag[:1].upper()}{tag[1:]}\n"
        yield from texts


def _operation(method: str, path: str, operation: _Described) -> Iterator[str]:
    yield f"### `{method} {path}`\n"
    yield operation["description"] + "\n"
    if parameters := operation.get("parameters"):
        yield "| parameter | in | type | |\n|---|---|---|---|"
        for one in parameters:
            must = "; required" if one["required"] and one["in"] != "path" else ""
            yield _row(f"`{one['name']}`", one["in"], _type(one["schema"]) + must, _about(one["schema"], one))
        yield ""
    if body := operation.get("requestBody"):
        (content,) = body["content"].values()
        yield f"The body is JSON: {_type(content['schema'])}.\n"
    yield "| status | answer |\n|---|---|"
    answers = (
        (status, _failure(answer) if status >= "400" else _answer(answer))
        for status, answer in operation["responses"].items()
    )
    yield from (_row(status, text) for status, text in answers if text)
    yield ""


def _failure(answer: _Described) -> str:
    """Errors by their names, but for those that any request may meet."""
    return "; ".join(text for text in answer["description"].split("; ") if text.split("`")[1] not in _ANYWHERE)


def _answer(answer: _Described) -> str:
    """What the body is."""
    content = answer.get("content", {})
    texts = [_type(content[media_type]["schema"]) for media_type in content if media_type == "application/json"]
    texts += ["server-sent events" for media_type in content if media_type == "text/event-stream"]
    return " or ".join(texts) or str(answer["description"])


def _schemas(description: _Described) -> Iterator[str]:
    for name, schema in sorted(description["components"]["schemas"].items()):
        yield f"### {name}\n"
        if about := schema.get("description"):
            yield about + "\n"
        if "enum" in schema:
            yield _type(schema) + "\n"
            continue
        yield "| field | type | |\n|---|---|---|"
        for field, of in schema["properties"].items():
            yield _row(f"`{field}`", _type(of), _about(of))
        yield ""


def _type(schema: _Described) -> str:
    """What a value is, in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "prefixItems" in schema:
        return "[" + ", ".join(_type(one) for one in schema["prefixItems"]) + "]"
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    return str(schema.get("format") or schema.get("type") or "anything")


def _about(*described: _Described) -> str:
    """What is said of a value, its bounds, and what it is where it is left out."""
    sentences = [next((one["description"] for one in described if "description" in one), "")]
    schema = described[0]
    for one in (schema, *schema.get("anyOf", ())):
        least, most = (
            one.get(low, one.get(high)) for low, high in (("minimum", "minLength"), ("maximum", "maxLength"))
        )
        if most is not None:
            sentences.append(f"At most {most:,.12g}." if least is None else f"{least:,.12g} to {most:,.12g}.")
    if schema.get("default") not in (None, "", []):
        sentences.append(f"Default: `{schema['default']}`.")
    return " ".join(filter(None, sentences))


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
