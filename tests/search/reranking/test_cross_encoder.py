"""Cross-encoders: a model created here if the extra is installed, a warning if it is not."""

from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

from docindex_dagster.search.model import Scored, Signal
from docindex_dagster.search.reranking.protocol import Passage, apply_reranker
from docindex_dagster.search.reranking.providers import DEFAULT_MODEL, CrossEncoderReranker

IS_INSTALLED = find_spec("sentence_transformers") is not None
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "pump", "valve", "tank", "opens", "fills", "the")


def passages() -> list[Passage]:
    texts = ("the pump fills", "the valve opens", "the tank", "pump valve tank")
    return [Passage(Scored.of(f"{at}", (Signal("bm25", 1 - at / 10, at + 1),)), text) for at, text in enumerate(texts)]


@pytest.mark.skipif(IS_INSTALLED, reason="the extra is installed")
def test_without_the_extra_the_order_stays_and_a_warning_says_what_to_install():
    warnings: list[str] = []

    assert apply_reranker(CrossEncoderReranker(), "pump", passages(), warnings.append) == [p.scored for p in passages()]
    assert "pip install '.[sentence-transformers]'" in warnings[0]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """Save a small cross-encoder with random weights in the format of sentence-transformers."""
    import torch
    from sentence_transformers import CrossEncoder
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder: Path = tmp_path_factory.mktemp("model")
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        num_labels=1,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    BertTokenizerFast(vocab_file=str(folder / "vocab.txt")).save_pretrained(folder)
    CrossEncoder(str(folder)).save_pretrained(str(folder))
    return folder


@pytest.mark.extras
def test_the_models_scores_are_blended_with_the_first_ones(model):
    from sentence_transformers import CrossEncoder

    given = passages()
    scores = CrossEncoder(str(model)).predict([("pump", passage.text) for passage in given])
    best = max(range(len(given)), key=lambda at: scores[at])

    alone = CrossEncoderReranker(str(model), weight=1.0).rerank("pump", given)
    half = CrossEncoderReranker(str(model), weight=0.5).rerank("pump", given)

    assert alone[0].chunk_id == str(best)
    assert sorted(item.chunk_id for item in half) == ["0", "1", "2", "3"]
    assert all(left.score >= right.score for left, right in pairwise(half))


@pytest.mark.extras
def test_a_model_that_cannot_be_loaded_degrades_with_a_warning(tmp_path):
    warnings: list[str] = []

    found = apply_reranker(CrossEncoderReranker(str(tmp_path / "nowhere")), "pump", passages(), warnings.append)

    assert found == [passage.scored for passage in passages()]
    assert "cannot be loaded" in warnings[0]


@pytest.mark.extras
def test_a_folder_in_the_working_directory_is_not_taken_for_a_model_of_the_hub(tmp_path, monkeypatch):
    folder = tmp_path / DEFAULT_MODEL
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(
        '{"model_type": "bert", "architectures": ["BertForSequenceClassification"], "hidden_size": 32, '
        '"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 30, "num_labels": 1}'
    )
    (folder / "modules.json").write_text('[{"idx": 0, "name": "0", "path": "", "type": "modeling_x.X"}]')
    (folder / "config_sentence_transformers.json").write_text('{"model_type": "CrossEncoder"}')
    (folder / "modeling_x.py").write_text("import pathlib\npathlib.Path('pwned').touch()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    warnings: list[str] = []

    apply_reranker(CrossEncoderReranker(), "pump", passages(), warnings.append)

    assert not (tmp_path / "pwned").exists()
    assert "from the hub" in warnings[0]
