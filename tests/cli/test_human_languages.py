"""Document languages: a filter, and one result for a page with translations."""

import json
from pathlib import Path

import pytest

from docindex_dagster.documents.human_language import language_of, parse_language_tag
from docindex_dagster.search.query_hints import page_of
from tests.cli.conftest import index_in

TEXTS = {
    "en": "# Installation\n\nInstall the package with pip before the server is started.\n"
    "The server listens on port 8000, and reads its settings from a file in the home folder of the user.\n",
    "de": "# Installation\n\nInstalliere das Paket mit pip, bevor der Server gestartet wird.\n"
    "Der Server lauscht auf Port 8000 und liest seine Einstellungen aus einer Datei im Heimverzeichnis.\n",
    "pt": "# Instalação\n\nInstale o pacote com pip antes de iniciar o servidor.\n"
    "O servidor escuta na porta 8000 e lê as suas configurações de um arquivo na pasta pessoal do usuário.\n",
    "zh": "# 安装\n\n在启动服务器之前,请使用 pip 安装该软件包。服务器监听 8000 端口,并从用户主目录中的文件"
    "读取其设置。如果没有该文件,服务器会使用默认设置,并在日志中写入一条警告。\n",
}


def write(root: Path) -> None:
    for language, text in TEXTS.items():
        folder = root / "manual/docs" / language / "guide"
        folder.mkdir(parents=True)
        (folder / "install.md").write_text(text)
    (root / "manual/docs/en/only.md").write_text(
        "# Pumps\n\nA pump of the server is started by pip, which nobody expects.\n"
    )
    (root / "manual/server.py").write_text('def start_server(port):\n    """Start the server on a port."""\n')


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory):
    return index_in(tmp_path_factory.mktemp("indexed"), write=write)


@pytest.fixture
def indexed(run_indexed):
    return run_indexed


def found(run, query: str, *arguments: str) -> list[str]:
    answer = run("search", query, "--json", "-k", "20", *arguments)
    assert answer.code == 0, answer.err
    hits = json.loads(answer.out)
    return [hit["path"] for hit in (hits["matches"] if "literal" in arguments else hits)]


@pytest.mark.parametrize(
    ("query", "language"),
    [
        ("how is the server installed with pip", "en"),
        ("wie wird das Paket mit pip installiert, bevor der Server startet", "de"),
        ("como instalar o pacote antes de iniciar o servidor", "pt"),
        ("如何在启动服务器之前安装软件包", "zh"),
    ],
)
@pytest.mark.parametrize("granularity", ["chunk", "file"])
def test_a_page_in_four_languages_is_one_result_in_that_of_the_question(indexed, query, language, granularity):
    paths = found(indexed, query, "--granularity", granularity)

    assert [path for path in paths if path.endswith("install.md")] == [f"docs/{language}/guide/install.md"]


def test_a_name_is_answered_in_english(indexed):
    paths = found(indexed, "pip", "--type", "doc")

    assert [path for path in paths if path.endswith("install.md")] == ["docs/en/guide/install.md"]


def test_an_exact_text_is_found_in_every_translation(indexed):
    paths = found(indexed, "pip", "--mode", "literal")

    assert len({path for path in paths if path.endswith("install.md")}) == 4


@pytest.mark.parametrize("mode", ["hybrid", "bm25", "vector", "literal"])
@pytest.mark.parametrize("tag", ["de", "DE", "de-AT"])
def test_lang_human_keeps_what_is_written_in_it(indexed, mode, tag):
    assert found(indexed, "pip", "--mode", mode, "--lang-human", tag) == ["docs/de/guide/install.md"]


def test_json_says_in_which_language_a_document_is_written(indexed):
    hits = json.loads(indexed("search", "server", "--json", "-k", "20").out)

    assert {hit["path"]: hit["human_language"] for hit in hits if hit["path"].endswith(("only.md", "server.py"))} == {
        "docs/en/only.md": "en",
        "server.py": None,
    }


def test_a_language_that_no_document_has_is_named(indexed):
    answer = indexed("search", "pip", "--lang-human", "fr")

    assert answer.code == 1
    assert "no indexed file is written in fr" in " ".join(answer.err.split())


def test_what_is_no_language_is_refused(indexed):
    answer = indexed("search", "pip", "--lang-human", "klingon")

    assert answer.code == 1
    assert "unknown language of documents: 'klingon'. Use a code" in " ".join(answer.err.split())


@pytest.mark.parametrize(
    ("path", "language", "page"),
    [
        ("docs/de/install.md", "de", "docs/install.md"),
        ("docs/de/install.md", "en", "docs/de/install.md"),
        ("README.zh-CN.md", "zh", "README.md"),
        ("README_ja.md", "ja", "README.md"),
        ("README.md", "en", "README.md"),
        ("i18n/pt-BR/docusaurus-plugin-content-docs/current/intro.md", "pt", "docs/intro.md"),
        ("content/locales/fr/a/b.md", "fr", "content/a/b.md"),
    ],
)
def test_translations_of_a_page_have_a_path_in_common(path, language, page):
    assert page_of(path, language) == page


@pytest.mark.parametrize(
    ("tag", "language"), [("pt-BR", "pt"), ("zh_CN", "zh"), ("jp", "ja"), ("", None), ("x y", None)]
)
def test_a_tag_names_a_language(tag, language):
    assert parse_language_tag(tag) == language


@pytest.mark.parametrize("language", TEXTS)
def test_the_language_of_a_text_is_seen_through_its_code(language):
    code = "\n```python\nfor item in the_list_of_all_items:\n    print(item)\n```\n" * 20

    assert language_of([TEXTS[language] + code]) == language


def test_too_little_text_is_in_no_language():
    assert language_of(["# API"]) is None
    assert language_of([]) is None
