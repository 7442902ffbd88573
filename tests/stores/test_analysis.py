"""Terms of texts in several scripts and normal forms; the terms of ASCII text have never changed."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.stores.analysis import joins_known, located, parts, spellings, stems, terms

ASCII = st.text(st.characters(max_codepoint=127))
IDENTIFIERS = st.text("abXY_ .0", max_size=40)


def ascii_terms(text: str) -> list[str]:
    """Apply the ASCII rule: each word, followed by its parts if it has several."""
    found = []
    for word in re.findall(r"\w+", text, re.ASCII):
        cut = re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+", word)
        found += [word.lower(), *(part.lower() for part in cut if cut[1:])] if len(word) <= 128 else []
    return found


def finds(query: str, text: str) -> bool:
    """Return whether a text has all terms of a query."""
    return set(stems(terms(query))) <= set(stems(terms(text)))


@given(ASCII | IDENTIFIERS)
def test_the_terms_of_ascii_are_its_words_and_the_parts_of_its_names(text):
    assert terms(text) == ascii_terms(text)


@given(IDENTIFIERS)
def test_the_terms_of_ascii_are_the_same_beside_other_scripts(text):
    assert terms(f"{text} 税")[:-1] == terms(text)


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("审批流程", "采购订单自动审批流程。支持撤回。"),
        ("连接池", "生产环境的数据库连接池大小由配置文件决定。"),
        ("税", "订单的税率"),
        ("失敗", "ログインに失敗した場合は"),
        ("パスワード", "場合は、パスワードの再設定を行ってください。"),
        ("ログイン", "ﾛｸﾞｲﾝに失敗した"),
        ("ค่าเสื่อมราคา", "การคิดค่าเสื่อมราคาของสินทรัพย์"),
        ("ລະບົບ", "ການຕິດຕັ້ງລະບົບໃໝ່"),
        ("ទិន្នន័យ", "មូលដ្ឋានទិន្នន័យថ្មី"),
        ("ဒေတာ", "ဒေတာဘေ့စ်အသစ်"),
        ("설정", "설정을 바꾸려면"),
        ("키", "키를 저장한다"),
        ("API", "使用API密钥"),
        ("名前", "user_名前"),
        ("𠮷野", "𠮷野家に行く"),
    ],
)
def test_a_word_inside_a_sentence_without_spaces_is_found(word, sentence):
    assert finds(word, sentence)


def test_a_word_in_hangul_is_held_whole_and_as_pairs():
    assert terms("의존성에서는") == ["의존성에서는", "의존", "존성", "성에", "에서", "서는"]
    assert terms("키를") == ["키", "키를"]
    assert terms("값") == ["값"]


@pytest.mark.parametrize(
    ("word", "sentence"), [("采用", "采购订单"), ("地理", "合理地址"), ("ローン", "ログイン"), ("설명", "설정을")]
)
def test_a_word_of_other_neighbours_is_not_found(word, sentence):
    assert not finds(word, sentence)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("prüfung", "Prüfung"),
        ("Größenänderung", unicodedata.normalize("NFD", "Die Größenänderung")),
        (unicodedata.normalize("NFD", "Übersicht"), "ÜBERSICHT"),
        ("configuration", "con\u00adfig\u00aduration"),
        ("database", "data\u200bbase"),
        ("workflow filesystem", "work\ufb02ow of the \ufb01lesystem"),
        ("api", "\uff21\uff30\uff29"),
        ("resume", "résumé"),
        ("resume", unicodedata.normalize("NFD", "résumé")),
        ("strasse", "Straße"),
        ("STRASSE", "straße"),
        ("smorrebrod", "smørrebrød"),
        ("lodz", "Łódź"),
        ("istanbul", "İstanbul"),
        ("ανοιξη", "άνοιξη"),
        ("설정", unicodedata.normalize("NFD", "설정을")),
        ("ガイド", unicodedata.normalize("NFD", "ガイド")),
    ],
)
def test_a_word_is_found_in_other_normal_forms_and_without_its_accents(query, text):
    assert finds(query, text)


@pytest.mark.parametrize(("query", "text"), [("कि", "का"), ("が", "か"), ("résumé", "resume")])
def test_signs_that_make_another_word_are_kept(query, text):
    assert not finds(query, text)


def test_a_word_with_accents_is_one_word():
    assert terms("Prüfung naïve") == ["prüfung", "prufung", "naïve", "naive"]
    assert terms("हिन्दी किताब") == ["हिन्दी", "किताब"]


def test_a_name_with_accents_has_its_parts():
    assert terms("größenÄnderung") == ["größenänderung", "grossenanderung", "grossen", "anderung"]
    assert parts("größenÄnderung Prüfung") == ["grossen", "anderung", "prüfung"]


def test_of_two_spellings_the_one_without_accents_is_left_out():
    assert spellings(terms("Prüfung offen 税")) == ["prüfung", "offen", "税"]


@pytest.mark.parametrize(
    ("term", "known", "expected"),
    [
        ("置连", {"配置", "连接"}, True),
        ("采购", {"流程", "采"}, False),
        ("正을", {"설정"}, False),
        ("정을", {"설정"}, True),
        ("설정을", {"설정"}, True),
        ("word", {"words"}, False),
    ],
)
def test_what_only_joins_two_known_words_is_recognised(term, known, expected):
    assert joins_known(term, known) is expected


@given(st.text(alphabet="aß漢字かなกำ값을_1 \u0301\u00ad\ufb01\uff26ﾛﾞ\U00020000"))
def test_what_is_located_lies_in_the_text_and_gives_its_terms(text):
    found = list(located(text))

    assert all(0 <= start < end <= len(text) for start, end, _ in found)
    assert [term for *_, of in found for term in of] == terms(text)
    assert all(term and not term.isspace() for term in terms(text))


def test_every_letter_and_digit_gives_terms_that_are_stemmed_one_by_one():
    found = [term for number in range(0x110000) if chr(number).isalnum() for term in terms(chr(number))]

    assert len(stems(found)) == len(found) > 100_000


def test_data_is_no_word_and_a_long_sentence_is_many():
    assert terms("A" * 200) == []
    assert finds("订单", "采购" * 200 + "订单")
