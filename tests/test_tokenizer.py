"""The tokenizer of the default model."""

from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from docindex_dagster.tokenizer import count_tokens, model_file

SHIPPED = Tokenizer.from_file(str(model_file("tokenizers/l2_supercat_tokenizer_config.json")))
SHIPPED.no_truncation()


@given(st.lists(st.text(), max_size=5))
def test_tokens_are_those_of_the_tokenizer_as_it_is_shipped(texts):
    expected = [len(encoding) for encoding in SHIPPED.encode_batch(texts, add_special_tokens=False)]

    assert count_tokens(texts) == expected
