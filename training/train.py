"""Training of the rows, which moves queries close to their answers and away from other passages of the repository.

The loss is InfoNCE (van den Oord et al. 2018, arXiv:1807.03748) in both directions. Each block has pairs of only one
repository, so the negatives of a query are passages that a search there must rank below its answer.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from docindex_dagster.embedding.static import Bags
from training.tokens import chosen


@dataclass(frozen=True, slots=True)
class Recipe:
    """Hyperparameters of the training."""

    seed: int = 0
    dimension: int = 256
    epochs: int = 3
    block: int = 256  # pairs of one repository that are contrasted with each other
    blocks: int = 8  # per step
    rate: float = 0.01  # peak learning rate
    warm_up: float = 0.05  # share of the steps
    scale: float = 20.0  # factor of the cosines
    backward: float = 0.25  # share of the loss from passages to queries
    spread: float = 0.1  # standard deviation of the initial rows


@dataclass(frozen=True, slots=True)
class Data:
    """Pairs in the form that training reads. Equal texts have equal hashes."""

    queries: Bags
    passages: Bags
    repositories: NDArray[np.int64]
    query_hashes: NDArray[np.int64]
    passage_hashes: NDArray[np.int64]


def train(data: Data, tokens: int, recipe: Recipe, state: Path, report: Callable[[str], None]) -> NDArray[np.float32]:
    """Train the rows, and return them with the shape (tokens, dimension).

    Each epoch ends with a checkpoint in `state`, from which an interrupted training resumes. Each epoch has its own
    seed, so an interruption does not change the result.
    """
    torch.manual_seed(recipe.seed)
    torch.set_num_threads(1)  # with several threads, the order of additions varies, and so do the last digits
    torch.use_deterministic_algorithms(mode=True)
    rows = torch.nn.Parameter(torch.randn(tokens, recipe.dimension) * recipe.spread)
    optimizer = torch.optim.Adam([rows], lr=recipe.rate, betas=(0.9, 0.98), fused=True)
    first = _resume(state, rows, optimizer)
    for epoch in range(first, recipe.epochs):
        steps = [*_steps(data.repositories, recipe, np.random.default_rng((recipe.seed, epoch)))]
        losses = []
        for number, pairs in enumerate(steps):
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate * _rate(epoch + number / len(steps), recipe)
            loss = _loss(rows, data, pairs, recipe)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        torch.save({"epoch": epoch + 1, "rows": rows.data, "optimizer": optimizer.state_dict()}, state)
        report(f"epoch {epoch + 1} of {recipe.epochs}: {len(steps)} steps, loss {np.mean(losses):.3f}")
    found: NDArray[np.float32] = rows.detach().numpy()
    return found


def _resume(state: Path, rows: torch.nn.Parameter, optimizer: torch.optim.Optimizer) -> int:
    """Restore the checkpoint, and return the number of finished epochs."""
    if not state.exists():
        return 0
    saved = torch.load(state, weights_only=True)
    rows.data.copy_(saved["rows"])
    optimizer.load_state_dict(saved["optimizer"])
    return int(saved["epoch"])


def _steps(repositories: NDArray[np.int64], recipe: Recipe, chance: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Yield the pairs of each step: full blocks of one repository each, in random order."""
    order = chance.permutation(len(repositories))
    order = order[np.argsort(repositories[order], kind="stable")]
    groups = np.split(order, np.flatnonzero(np.diff(repositories[order])) + 1)
    blocks = [
        group[start : start + recipe.block]
        for group in groups
        for start in range(0, len(group) - recipe.block + 1, recipe.block)
    ]
    chance.shuffle(blocks)
    for start in range(0, len(blocks) - recipe.blocks + 1, recipe.blocks):
        yield np.concatenate(blocks[start : start + recipe.blocks])


def _rate(epochs: float, recipe: Recipe) -> float:
    """Return the share of the peak learning rate: a warm-up, then a linear decay."""
    done = epochs / recipe.epochs
    if done < recipe.warm_up:
        return max(done / recipe.warm_up, 0.01)
    return (1 - done) / (1 - recipe.warm_up)


def _loss(rows: torch.nn.Parameter, data: Data, pairs: NDArray[np.int64], recipe: Recipe) -> torch.Tensor:
    shape = recipe.blocks, recipe.block
    queries = _embed(rows, data.queries, pairs).view(*shape, -1)
    passages = _embed(rows, data.passages, pairs).view(*shape, -1)
    cosines = torch.bmm(queries, passages.transpose(1, 2)) * recipe.scale
    # Pairs with the same query or the same passage are not negatives of each other.
    is_other = ~torch.eye(recipe.block, dtype=torch.bool)
    is_same = _equal(data.query_hashes[pairs], shape) | _equal(data.passage_hashes[pairs], shape)
    cosines = cosines.masked_fill(is_same & is_other, -math.inf)
    right = torch.arange(recipe.block).repeat(recipe.blocks)
    forward = functional.cross_entropy(cosines.reshape(-1, recipe.block), right)
    backward = functional.cross_entropy(cosines.transpose(1, 2).reshape(-1, recipe.block), right)
    return (1 - recipe.backward) * forward + recipe.backward * backward


def _embed(rows: torch.nn.Parameter, texts: Bags, pairs: NDArray[np.int64]) -> torch.Tensor:
    bags = chosen(texts, pairs)
    tokens, weights, begins = map(torch.from_numpy, (bags.tokens, bags.weights, bags.begins))
    pooled = functional.embedding_bag(tokens, rows, begins, mode="sum", per_sample_weights=weights)
    return functional.normalize(pooled, dim=1)


def _equal(hashes: NDArray[np.int64], shape: tuple[int, int]) -> torch.Tensor:
    of_block = torch.from_numpy(hashes).view(*shape)
    return of_block[:, :, None] == of_block[:, None, :]
