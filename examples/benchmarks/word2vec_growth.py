"""Does the cost of a word stay flat as the text and the vocabulary grow, and what memory does training take?

Texts of Zipf-distributed words, made here: rank r occurs in proportion to 1/(r + 2.7). Each size trains one epoch in
a process of its own with one BLAS thread. The words per second are those that thinning out leaves. Memory is the
process's own at its peak less what it had before, beside the tables that it must hold: 3 × vocabulary × dimension ×
4 bytes, for the model's two and the vectors that are returned. The text lies in files, mapped into memory.

    python examples/benchmarks/word2vec_growth.py
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np

from metagrad.word2vec import Corpus, Vocabulary, Word2Vec

DIM = 100
SIZES = [(1_000_000, 50_000), (4_000_000, 50_000), (17_000_000, 50_000), (4_000_000, 10_000), (4_000_000, 100_000)]
SIZES += [(4_000_000, 1_000_000)]


def zipf_corpus(folder: Path, words: int, vocabulary: int) -> Corpus:
    """A text of sentences of 20 words, in files: written piece by piece, so that making it takes no memory."""
    weights = np.cumsum(1 / (np.arange(vocabulary) + 2.7))
    rng, counts = np.random.default_rng(0), np.ones(vocabulary, np.int64)
    ids = np.lib.format.open_memmap(folder / "ids.npy", "w+", np.int32, (words,))
    for start in range(0, words, 1 << 20):
        piece = np.searchsorted(weights, rng.random(min(1 << 20, words - start)) * weights[-1]).astype(np.int32)
        ids[start : start + len(piece)] = piece
        counts += np.bincount(piece, minlength=vocabulary)
    np.save(folder / "offsets.npy", np.append(np.arange(0, words, 20), words))
    opened = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("ids", "offsets"))
    return Corpus(*opened, Vocabulary([f"w{i}" for i in range(vocabulary)], counts), folder)


def child(words: int, vocabulary: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        corpus = zipf_corpus(Path(folder), words, vocabulary)
        before, peak, done = _own_memory(), 0, threading.Event()

        def watch() -> None:
            nonlocal peak
            while not done.wait(0.02):
                peak = max(peak, _own_memory())

        watcher = threading.Thread(target=watch)
        watcher.start()
        trainer = Word2Vec(dim=DIM, epochs=1)
        trainer.train(corpus, progress=False)
        done.set()
        watcher.join()
        print(json.dumps({"speed": trainer.words_per_second, "MB": (peak - before) / 1e6}))


def _own_memory() -> int:
    """Bytes of this process now, without mapped files, whose pages the system may drop at any time (Linux)."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["RssAnon"].split()[0]) * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--child", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    titles = ("words", "vocabulary", "words/s", "of the first", "peak MB", "tables MB", "rest MB")
    print("".join(f"{title:>13}" for title in titles))
    first = None
    for words, vocabulary in SIZES:
        command = [sys.executable, __file__, "--child", str(words), str(vocabulary)]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **threads}, check=True)
        result = json.loads(done.stdout)
        first = first or result["speed"]
        tables = 3 * vocabulary * DIM * 4 / 1e6
        cells = (f"{words:,}", f"{vocabulary:,}", f"{result['speed']:,.0f}", f"{result['speed'] / first:.2f}")
        cells += tuple(f"{mb:.0f}" for mb in (result["MB"], tables, result["MB"] - tables))
        print("".join(f"{cell:>13}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
