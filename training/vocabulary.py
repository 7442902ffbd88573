"""Vocabulary of the model: WordPiece tokens of the words of the pairs."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from docindex_dagster.core.tokenizer import words

_SAMPLE = 400_000  # pairs
_TEXT = 2000  # characters of each text
_BATCH = 2000  # texts
_FREQUENCY = 20  # rarer words are split into pieces
_ALPHABET = 1500  # characters, with and without `##`
_LONGEST = 40  # bytes of a word
_UNKNOWN = "[UNK]"


def learn(pairs: pa.Table, size: int, seed: int) -> list[str]:
    """Return at most `size` tokens; tokens that continue a word start with `##`."""
    counts = _count(pairs, seed)
    tokenizer = Tokenizer(models.WordPiece(unk_token=_UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size + 1,
        min_frequency=_FREQUENCY,
        special_tokens=[_UNKNOWN],
        limit_alphabet=_ALPHABET,
        show_progress=False,
    )
    # Words are sorted, because the trainer breaks ties by order.
    tokenizer.train_from_iterator((_repeated(word, counts[word]) for word in sorted(counts)), trainer=trainer)
    by_id = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    return [token for token, _ in by_id if token != _UNKNOWN]


def _count(pairs: pa.Table, seed: int) -> Counter[str]:
    sample = pairs.take(np.sort(np.random.default_rng(seed).permutation(pairs.num_rows)[:_SAMPLE]))
    counts: Counter[bytes] = Counter()
    for column in ("query", "passage"):
        texts = sample[column].to_pylist()
        for start in range(0, len(texts), _BATCH):
            found = pc.value_counts(words([text[:_TEXT] for text in texts[start : start + _BATCH]]).values)
            for word, count in zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True):
                counts[word] += count
    kept = {word: count for word, count in counts.items() if len(word) <= _LONGEST and count >= _FREQUENCY}
    return Counter({word.decode("utf-8", "ignore"): count for word, count in kept.items()})


def _repeated(word: str, count: int) -> str:
    """Repeat a word as often as it occurs; very frequent words less often, since they become tokens anyway."""
    full = 5000
    return " ".join([word] * (count if count < full else full + (count - full) // 20))
