import codecs
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docindex_dagster.core.hashing import digest
from docindex_dagster.sources.text import Decoded, decode, is_binary, read_document


@given(st.binary(max_size=400))
@settings(deadline=None)
def test_any_bytes_decode_to_text_that_utf_8_can_hold(data):
    decode(data).text.encode()
    is_binary(data)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))  # with NUL bytes, it could be UTF-16
def test_utf_8_comes_back_as_it_was(text):
    text = text.removeprefix("\ufeff")
    assert decode(text.encode()) == Decoded(text, "utf-8", is_lossy=False)


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_a_byte_order_mark_decides_and_is_no_part_of_the_text(mark, encoding):
    data = mark + "naïve 🚀\n".encode(encoding)
    assert decode(data) == Decoded("naïve 🚀\n", encoding, is_lossy=False)
    assert not is_binary(data)


def test_a_file_cut_off_in_a_character_is_still_utf_8():
    cut = "Größe: 10 €".encode()[:-1]
    assert decode(cut) == Decoded("Größe: 10 \ufffd", "utf-8", is_lossy=True)


def test_one_wrong_byte_among_many_right_ones_is_still_utf_8():
    data = "größer, höher, weiter, schöner, kühner, müßig".encode() + b" \xe9 " + "öäü".encode()
    decoded = decode(data)
    assert (decoded.encoding, decoded.is_lossy) == ("utf-8", True)
    assert "schöner" in decoded.text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("# Auteur: André\nx = 1\n", "latin-1"),
        ("Die Größe der Datei ändert sich nicht, wenn sie übersetzt wird.\n", "cp1252"),
        ("Привет, мир. Это текст на русском языке для проверки.\n", "cp1251"),
        ("これは日本語のテキストです。テストのために書かれました。\n", "shift_jis"),
        ("这是一个用于测试的中文文本。我们需要检测编码。\n", "gb2312"),
        ("資料庫索引設定\n這個檔案說明如何設定搜尋。請先安裝套件然後執行指令。\n", "big5"),
        ("# 設定檔\n", "big5"),
        ("Zażółć gęślą jaźń. Dokumentacja wyszukiwarki: ustawienia źródeł i łączy.\n", "iso8859-2"),
        ("Użytkownik musi zmienić hasło co dziewięćdziesiąt dni, aby system był bezpieczny.\n", "iso8859-2"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy. Nastavení zdrojů.\n", "iso8859-2"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy. Nastavení zdrojů.\n", "cp1250"),
        ("# Główne ustawienia: ścieżka i łącze\ndef f():\n    return 1\n", "iso8859-2"),
        ("Настройка поиска. Сначала установите пакет, затем запустите команду.\n", "koi8-r"),
        ("검색 설정을 설명합니다. 먼저 패키지를 설치하고 명령을 실행하십시오.\n", "euc-kr"),
        ("Prix : 5 £ ± 2 %, température 20 °C, ¼ de litre\n", "cp1252"),
        ("¿Dónde está? L\u2019addition, s\u2019il vous plaît \u2013 merci\n", "cp1252"),
    ],
)
def test_legacy_encodings_are_detected(text, encoding):
    decoded = decode(text.encode(encoding))
    assert decoded.text == text
    assert not decoded.is_lossy


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    "text",
    [
        "def f():\r\n    return 'é'\r\n",
        "Hello, 🙂\n",
        "Настройка поиска. Сначала установите пакет.\n",
        "这个文件说明如何设置搜索。\n请先安装软件包。\n",
        '<?xml version="1.0" encoding="utf-16"?>\n<a/>\n' * 3000,
    ],
)
def test_utf_16_needs_no_byte_order_mark(text, encoding):
    data = text.encode(encoding)
    assert not is_binary(data)
    assert decode(data) == Decoded(text, encoding, is_lossy=False)


def test_utf_16_of_odd_length_is_decoded_with_loss():
    assert decode(codecs.BOM_UTF16_LE + b"h\0i") == Decoded("h\ufffd", "utf-16-le", is_lossy=True)


@pytest.mark.parametrize(
    "data",
    [
        *(b"text\0m", b"some\0bytes\0" * 20, b"\1\0\2\0\3\0", b"\0" * 100, b"ELF\0abcdefgh", b"Name: a\0\0"),
        struct.pack("<200h", *(number * 37 % 20_000 for number in range(200))),
        *(b"MZ\0\0", b"\x89PNG\r\n\x1a\n\0\0", bytes(range(1, 256)) * 4, codecs.BOM_UTF16_LE + b"A\0\0\0B\0"),
    ],
)
def test_nul_bytes_and_control_characters_make_a_file_binary(data):
    assert is_binary(data)


@pytest.mark.parametrize(
    "data", [b"", b"plain\ttext\r\n\f", b"\x1b[31mred\x1b[0m text in a terminal log", b"caf\xe9\n"]
)
def test_text_with_the_usual_controls_is_not_binary(data):
    assert not is_binary(data)


def test_a_document_is_read_by_the_name_in_the_table(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a%41.md").write_bytes(b"\xef\xbb\xbf# Title\n")
    decoded, content_hash = read_document(tmp_path, "docs/a%2541.md", 100)
    assert decoded == Decoded("# Title\n", "utf-8", is_lossy=False)
    assert content_hash == digest(b"\xef\xbb\xbf# Title\n")


def test_a_document_that_grew_past_its_limit_is_not_read(tmp_path):
    (tmp_path / "a.md").write_bytes(b"0123456789")

    assert read_document(tmp_path, "a.md", 10)[0].text == "0123456789"
    with pytest.raises(OSError, match="grew past max_file_bytes"):
        read_document(tmp_path, "a.md", 9)
