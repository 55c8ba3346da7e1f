"""Word vectors in one run: metagrad, gensim and the same block model in PyTorch, on one text, with the same parameters.

Each trains in a process of its own, with one BLAS thread; one after the other, the seeds in turn. Effective words
are those that thinning out leaves. Quality: Spearman on WordSim-353 and SimLex-999, analogies over the 30 000 most
frequent words, with the files that the gensim package carries.

    pip install metagrad[bench]
    python examples/benchmarks/word2vec.py --corpus text.txt --epochs 5 --seeds 1 2 3
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np

from metagrad.word2vec import Corpus, NoiseSampler, WordVectors, embedded_text, keep_probability, noise_distribution
from metagrad.word2vec.blocks import BlockCutter
from metagrad.word2vec.evaluation import evaluate_analogies, evaluate_pairs
from metagrad.word2vec.trainer import Word2Vec

PARAMETERS = {"dim": 100, "window": 5, "negatives": 5, "sample": 1e-3, "min_count": 5, "lr": 0.025}
CONTENDERS = [
    ("metagrad", 1), ("metagrad", 2), ("gensim iterator", 1), ("gensim iterator", 2),
    ("gensim corpus_file", 1), ("gensim corpus_file", 2), ("PyTorch", 1),
]  # fmt: skip


def train_metagrad(corpus: Corpus, path: str, workers: int, epochs: int, seed: int) -> tuple[WordVectors, float]:
    trainer = Word2Vec(**PARAMETERS, workers=workers, epochs=epochs, seed=seed)
    start = time.perf_counter()
    vectors = trainer.train(corpus, progress=False)
    return vectors, time.perf_counter() - start


def train_gensim(corpus: Corpus, path: str, workers: int, epochs: int, seed: int, by_file: bool):
    from gensim.models import Word2Vec as Gensim
    from gensim.models.word2vec import LineSentence

    names = {"vector_size": "dim", "window": "window", "negative": "negatives", "sample": "sample", "alpha": "lr"}
    options = {theirs: PARAMETERS[ours] for theirs, ours in names.items()}
    model = Gensim(sg=1, min_count=PARAMETERS["min_count"], workers=workers, epochs=epochs, seed=seed, **options)
    source: dict[str, Any] = {"corpus_file": path} if by_file else {"corpus_iterable": LineSentence(path)}
    model.build_vocab(**source)
    totals = {"total_words": model.corpus_total_words, "total_examples": model.corpus_count}
    start = time.perf_counter()
    model.train(**source, **totals, epochs=epochs)
    seconds = time.perf_counter() - start
    return WordVectors(model.wv.index_to_key, model.wv.vectors), seconds


def train_torch(corpus: Corpus, path: str, workers: int, epochs: int, seed: int) -> tuple[WordVectors, float]:
    """The block model as PyTorch's users would write it: sparse embeddings, SGD, the blocks cut by metagrad."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    counts, dim, lr = corpus.vocabulary.counts, PARAMETERS["dim"], PARAMETERS["lr"]
    keep = keep_probability(counts, PARAMETERS["sample"]).astype(np.float32)
    cutter = BlockCutter(NoiseSampler(noise_distribution(counts)), keep)
    inputs, outputs = (torch.nn.Embedding(len(counts), dim, sparse=True) for _ in range(2))
    torch.nn.init.uniform_(inputs.weight, -0.5 / dim, 0.5 / dim)
    torch.nn.init.zeros_(outputs.weight)
    optimizer = torch.optim.SGD([inputs.weight, outputs.weight], lr=lr)
    entropy = torch.nn.functional.binary_cross_entropy_with_logits
    total, seen, generator = epochs * float((counts * keep).sum()), 0, np.random.default_rng(seed)
    start = time.perf_counter()
    for _ in range(epochs):
        for blocks in cutter.steps(corpus.ids, corpus.offsets, generator):
            optimizer.param_groups[0]["lr"] = lr * max(1 - seen / total, 1e-4)
            centres, contexts, pairs, noise, noise_weights = map(torch.from_numpy, blocks)
            G, n, b, C = pairs.shape
            v = inputs(centres)
            true = v.view(G, n, b, dim) @ outputs(contexts).unfold(1, C, b)
            false = v @ outputs(noise).transpose(1, 2)
            loss = entropy(true, torch.ones_like(true), weight=pairs, reduction="sum")
            loss = loss + entropy(false, torch.zeros_like(false), weight=noise_weights, reduction="sum")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()
            seen += centres.numel()
    return WordVectors(corpus.vocabulary.tokens, inputs.weight.detach().numpy()), time.perf_counter() - start


def child(name: str, workers: int, path: str, epochs: int, seed: int) -> dict[str, float]:
    corpus = Corpus.build(path, min_count=PARAMETERS["min_count"])
    if name.startswith("gensim"):
        vectors, seconds = train_gensim(corpus, path, workers, epochs, seed, name.endswith("corpus_file"))
    else:
        vectors, seconds = {"metagrad": train_metagrad, "PyTorch": train_torch}[name](
            corpus, path, workers, epochs, seed
        )
    counts = corpus.vocabulary.counts
    effective = float((counts * keep_probability(counts, PARAMETERS["sample"])).sum())
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    result = {"effective": epochs * effective / seconds, "raw": epochs * counts.sum() / seconds, "MB": peak / 1024}
    try:
        from gensim.test.utils import datapath
    except ImportError:
        return result
    result["WS-353"] = evaluate_pairs(vectors, datapath("wordsim353.tsv")).spearman
    result["SimLex"] = evaluate_pairs(vectors, datapath("simlex999.txt")).spearman
    result["analogies %"] = 100 * evaluate_analogies(vectors, datapath("questions-words.txt")).accuracy
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", help="a text file, one sentence a line; else the embedded text")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--only", nargs="+", help="contenders whose names contain one of these")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    path = options.corpus or str(embedded_text().paths[0])
    if options.child:
        name, workers, seed = options.child
        print(json.dumps(child(name, int(workers), path, options.epochs, int(seed))))
        return

    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    columns = ["effective", "raw", "MB", "WS-353", "SimLex", "analogies %"]
    print(f"{'':>20}{'workers':>9}" + "".join(f"{name:>17}" for name in columns))
    for name, workers in CONTENDERS:
        if options.only and not any(part in name for part in options.only):
            continue
        runs = []
        for seed in options.seeds:
            command = [sys.executable, __file__, "--corpus", path, "--epochs", str(options.epochs)]
            command += ["--child", name, str(workers), str(seed)]
            done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **threads})
            if done.returncode:
                print(f"{name:>20}{workers:>9}  not measured: {done.stderr.strip().splitlines()[-1]}")
                break
            runs.append(json.loads(done.stdout.splitlines()[-1]))
        else:
            print(f"{name:>20}{workers:>9}" + "".join(_cell([run.get(c) for run in runs]) for c in columns), flush=True)


def _cell(values: list) -> str:
    """The mean of the seeds, and the distance between the largest and the smallest."""
    if None in values:
        return f"{'-':>17}"
    mean, spread = np.mean(values), max(values) - min(values)
    text = f"{mean:,.0f}" if mean > 1000 else f"{mean:.3f}" if mean < 1 else f"{mean:.1f}"
    more = f" ±{spread / 2:,.0f}" if mean > 1000 else f" ±{spread / 2:.3f}" if mean < 1 else f" ±{spread / 2:.1f}"
    return f"{text + (more if len(values) > 1 else ''):>17}"


if __name__ == "__main__":
    main()
