"""A language model of characters, twice: with a recurrent layer and with attention.

Both read characters x_1 … x_t and say how likely each character is to come next; the loss is −log P(x_t+1 | x_1 … x_t).
The recurrent layer (a GRU, Cho et al. 2014) carries a state along; attention (Vaswani et al. 2017) looks back at every
character before, which a causal mask keeps from looking ahead.

    python examples/language_model.py                           # English about programming, which every Python carries
    python examples/language_model.py --model attention
    python examples/language_model.py --corpus novel.txt --epochs 3
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

import numpy as np
from tqdm import tqdm

import metagrad
from metagrad import Tensor, nn, no_grad
from metagrad import functional as F
from metagrad.optim import Adam, clip_grad_norm
from metagrad.word2vec import Sentences, embedded_text


class Recurrent(nn.Module):
    def __init__(self, characters: int, dim: int, length: int) -> None:
        self.embed = nn.Embedding(characters, dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, characters)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T) → scores (B, T, characters) of what comes after each."""
        return self.out(self.gru(self.embed(x))[0])


class Block(nn.Module):
    """What each character sees of those before it, then a small network for each alone; both are added to it."""

    def __init__(self, dim: int, heads: int) -> None:
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = nn.MultiheadAttention(dim, heads)
        self.network = nn.Sequential(nn.Linear(dim, 4 * dim), F.relu, nn.Linear(4 * dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x), causal=True)
        return x + self.network(self.norm2(x))


class Attention(nn.Module):
    def __init__(self, characters: int, dim: int, length: int, blocks: int = 2, heads: int = 4) -> None:
        self.embed = nn.Embedding(characters, dim)
        self.place = nn.Embedding(length, dim)
        self.blocks = [Block(dim, heads) for _ in range(blocks)]
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, characters)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, T) → scores (B, T, characters) of what comes after each."""
        h = self.embed(x) + self.place(np.arange(x.shape[1]))
        for block in self.blocks:
            h = block(h)
        return self.out(self.norm(h))


def load_text(path: str | None, most: int) -> str:
    """The first `most` characters."""
    text = ""
    for sentence in Sentences(path) if path else embedded_text():
        if len(text) >= most:
            break
        text += " ".join(sentence) + "\n"
    return text[:most]


def batches(ids: np.ndarray, length: int, size: int, generator: np.random.Generator) -> Iterator[tuple]:
    """Every window of `length` characters once, in random order, with the characters that follow each."""
    starts = generator.permutation((len(ids) - 1) // length) * length
    for i in range(0, len(starts) - size + 1, size):
        places = starts[i : i + size, None] + np.arange(length)
        yield Tensor(ids[places]), Tensor(ids[places + 1])


def train(model: nn.Module, ids: np.ndarray, options: argparse.Namespace) -> None:
    optimizer = Adam(model.parameters(), lr=options.lr)
    generator = np.random.default_rng(options.seed)
    for epoch in range(options.epochs):
        start, losses = time.perf_counter(), []
        all_batches = list(batches(ids, options.length, options.batch_size, generator))
        for x, following in tqdm(all_batches, desc=f"epoch {epoch + 1}", leave=False, disable=None):
            scores = model(x)
            loss = F.cross_entropy(scores.reshape(-1, scores.shape[-1]), following.reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            clip_grad_norm(model.parameters(), 1.0)  # a long way back through time may end in a steep place
            optimizer.step()
            losses.append(loss.item())
        last = np.mean(losses[-50:])
        print(
            f"epoch {epoch + 1}  loss {np.mean(losses):.3f}, at its end {last:.3f}  {time.perf_counter() - start:.0f} s"
        )


def write(model: nn.Module, start: str, characters: str, length: int, number: int) -> str:
    """`number` characters, each drawn from what the model expects after the last `length`."""
    ids = [characters.index(c) for c in start if c in characters]
    with no_grad():
        for _ in range(number):
            scores = model(Tensor(np.array([ids[-length:]])))[0, -1]
            ids.append(Tensor.multinomial(F.softmax(scores), 1).item())
    return "".join(characters[i] for i in ids)


def main() -> None:
    options = parse_options()
    metagrad.manual_seed(options.seed)
    text = load_text(options.corpus, options.most)
    characters = "".join(sorted(set(text)))
    if len(text) <= options.length * options.batch_size:
        raise ValueError(
            f"the text has {len(text)} characters, fewer than a batch takes: choose a smaller --batch-size"
        )
    ids = np.array([characters.index(c) for c in text])
    print(f"{len(ids):,} characters of {len(characters)} kinds: a guess has loss {np.log(len(characters)):.2f}")
    kind = {"gru": Recurrent, "attention": Attention}[options.model]
    model = kind(len(characters), options.dim, options.length)
    train(model, ids, options)
    print(write(model, options.start, characters, options.length, options.write))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", choices=["gru", "attention"], default="gru")
    parser.add_argument("--corpus", help="a text file, one sentence a line; else the embedded text")
    parser.add_argument("--most", type=int, default=300_000, help="characters of the text that are used")
    parser.add_argument("--dim", type=int, default=96, help="numbers in a state")
    parser.add_argument("--length", type=int, default=64, help="characters that are read at a time")
    parser.add_argument("--batch-size", type=int, default=32, help="windows in a batch")
    parser.add_argument("--epochs", type=int, default=2, help="passes over the text")
    parser.add_argument("--lr", type=float, default=3e-3, help="Adam's step size")
    parser.add_argument("--start", default="the ", help="what the text begins with that is written at the end")
    parser.add_argument("--write", type=int, default=200, help="how many characters to write")
    parser.add_argument("--seed", type=int, default=1, help="of everything random")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, LookupError) as error:
        sys.exit(f"language_model.py: {str(error).strip(chr(34))}")
