"""The tokenizer of the default model."""

from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from docindex_dagster.tokenizer import count_tokens, load_tokenizer, model_file, normalize

SHIPPED = Tokenizer.from_file(str(model_file("tokenizers/l2_supercat_tokenizer_config.json")))
SHIPPED.no_truncation()


# Where a border between words could be mistaken: spaces, the sign that stands for them, newlines, signs of bytes.
HARD = ["\t", "\n", "\r\n", " ", "  ", "\u2581", "a", ");", "<0x0A>", "\0", "é"]
SPECIAL = ["<s>", "</s>", "<unk>"]
ANY = st.text() | st.lists(st.sampled_from([*HARD, *SPECIAL]), max_size=12).map("".join)
PLAIN = ANY.filter(lambda text: not any(token in text for token in SPECIAL))


def test_no_token_spans_the_border_between_two_words():
    spanning = [token for token in SHIPPED.get_vocab() if "\n" in token or "\u2581" in token.lstrip("\u2581")]

    assert not spanning


@given(st.lists(PLAIN, max_size=5))
def test_tokens_are_those_of_the_tokenizer_as_it_is_shipped(texts):
    expected = [len(encoding) for encoding in SHIPPED.encode_batch(texts, add_special_tokens=False)]

    assert count_tokens(texts) == expected


@given(ANY)
def test_a_text_that_names_special_tokens_has_the_tokens_that_the_model_sees(text):
    assert count_tokens([text]) == [len(load_tokenizer().encode(normalize([text])[0], add_special_tokens=False))]
