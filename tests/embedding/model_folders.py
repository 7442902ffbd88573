"""Model folders in the layout of sentence-transformers, with arbitrary bytes as weights."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LIBRARY = "sentence_transformers.models."
POOLING = {"word_embedding_dimension": 24, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}


def write_model(folder: Path, *kinds: str, weights: bytes = b"weights", **configs: Mapping[str, Any]) -> Path:
    """Write a model folder with the given module kinds, the first at its root. `configs` maps kinds to configs."""
    kinds = kinds or ("Transformer", "Pooling", "Normalize")
    modules = []
    for at, kind in enumerate(kinds):
        path = f"{at}_{kind}" if at else ""
        modules.append({"idx": at, "name": str(at), "path": path, "type": LIBRARY + kind})
        (folder / path).mkdir(parents=True, exist_ok=True)
        config = configs.get(kind, POOLING if kind == "Pooling" else None)
        if config is not None:
            (folder / path / "config.json").write_text(json.dumps(config))
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "model.safetensors").write_bytes(weights)
    return folder
