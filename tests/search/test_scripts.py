"""Search in scripts without spaces, with accents, and in different normal forms."""

import unicodedata

import pytest

from docindex_dagster.core.layout import Layout
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.lookup import find_chunks
from docindex_dagster.search.model import Hit, Mode
from docindex_dagster.stores.reader import Reader, open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of

DECOMPOSED = unicodedata.normalize("NFD", "Schule/Prüfung.md")
TEXTS = {
    "approval.md": "采购订单自动审批流程。支持撤回。",
    "deploy.md": "生产环境的数据库连接池大小由配置文件决定。",
    "login.md": "ログインに失敗した場合は、パスワードの再設定を行ってください。",
    "asset.md": "การคิดค่าเสื่อมราคาของสินทรัพย์ถาวร",
    "settings.md": "환경 설정을 바꾸려면 파일을 다시 읽어야 합니다.",
    "table.md": unicodedata.normalize("NFD", "Die Größenänderung der Tabelle."),
    "soft.md": "The con\u00adfig\u00aduration of the data\u200bbase cluster.",
    "ligature.md": "The work\ufb02ow of the \ufb01lesystem.",
    "accented.md": "The résumé parser.",
    "plain.md": "The resume parser.",
    "kitchen.md": "Die Küche hat Türen, Stühle, Schlüssel und Gemüse.",
    DECOMPOSED: "The exam page.",
    "설명/값.md": "설명 페이지",
    **{f"note{number}.md": f"Text {number} on gardens and the weather." for number in range(6)},
}


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Reader:
    layout = Layout(tmp_path_factory.mktemp("index"))
    chunks = chunks_of({path: [text] for path, text in TEXTS.items()}, "library/texts", "markdown")
    publish_rows(layout, "library/texts", chunks, vectors_of(chunks))
    return open_reader(layout)


def find(reader: Reader, query: str, **arguments) -> list[Hit]:
    return search(reader, query, StaticEmbedder, **arguments)


ASKED = [
    ("审批流程", "approval.md"),
    ("数据库连接池", "deploy.md"),
    ("失敗", "login.md"),
    ("パスワードの再設定", "login.md"),
    ("ค่าเสื่อมราคา", "asset.md"),
    ("설정", "settings.md"),
    ("파일", "settings.md"),
    ("größenänderung", "table.md"),
    ("GRÖSSENÄNDERUNG", "table.md"),
    ("configuration", "soft.md"),
    ("database", "soft.md"),
    ("workflow", "ligature.md"),
    ("filesystem", "ligature.md"),
    ("kuche", "kitchen.md"),
    ("gemüse", "kitchen.md"),
    (unicodedata.normalize("NFD", "schlüssel"), "kitchen.md"),
]


@pytest.mark.parametrize("mode", [Mode.BM25, Mode.HYBRID])
@pytest.mark.parametrize(("query", "path"), ASKED)
def test_a_word_is_found_without_a_warning(reader, mode, query, path):
    warnings: list[str] = []

    assert find(reader, query, mode=mode, warn=warnings.append)[0].path == path
    assert warnings == []


@pytest.mark.parametrize("mode", [Mode.BM25, Mode.HYBRID])
@pytest.mark.parametrize(
    ("query", "first", "second"), [("resume", "plain", "accented"), ("résumé", "accented", "plain")]
)
def test_the_exact_spelling_comes_before_the_other(reader, mode, query, first, second):
    found = [hit.path for hit in find(reader, query, mode=mode)]

    assert found[:2] == [f"{first}.md", f"{second}.md"]


@pytest.mark.parametrize(
    ("query", "lost"), [("如何配置连接池大小", None), ("退款规则", '"退款"'), ("비밀번호 초기화", '"비밀번호"')]
)
def test_a_warning_names_only_words_that_occur_nowhere(reader, query, lost):
    warnings: list[str] = []
    find(reader, query, warn=warnings.append)

    assert (lost in "".join(warnings)) if lost else warnings == []


@pytest.mark.parametrize(
    ("query", "path", "marked"),
    [
        ("审批流程", "approval.md", ["审批流程"]),
        ("ログイン失敗", "login.md", ["ログイン", "失敗"]),
        ("설정", "settings.md", ["설정"]),
        ("database", "soft.md", ["data\u200bbase"]),
        ("kuche", "kitchen.md", ["Küche"]),
    ],
)
def test_what_is_marked_is_the_word_as_the_text_spells_it(reader, query, path, marked):
    hit = find(reader, query, mode=Mode.BM25)[0]

    assert hit.path == path
    assert [hit.snippet.text[start:end] for start, end in hit.snippet.highlights] == marked


def test_a_sentence_without_spaces_is_no_name(reader):
    assert find(reader, "数据库连接池大小由什么决定", mode=Mode.BM25)[0].path == "deploy.md"


@pytest.mark.parametrize("path", [DECOMPOSED, "설명/값.md"])
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_path_is_known_whether_its_accents_are_composed_or_not(reader, path, form):
    (row,) = find_chunks(reader, unicodedata.normalize(form, path))

    assert row["path"] == path


@pytest.mark.parametrize("mode", [Mode.BM25, Mode.VECTOR])
@pytest.mark.parametrize("glob", ["Prüfung.md", "/Schule/Prüfung.md", "**/Prü*", DECOMPOSED])
def test_a_glob_matches_paths_whether_their_accents_are_composed_or_not(reader, mode, glob):
    found = find(reader, "exam page", mode=mode, filters=Filters(path_glob=glob))

    assert [hit.path for hit in found] == [DECOMPOSED]
