"""Word2Vec: from a text to word vectors, with a schedule, reports, checkpoints, and several processes.

The steps are blocks.py's, the model is models.py's, the loop over steps training.py's.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from ..cuda import get_device
from ..serialization import load, save
from .blocks import BlockCutter
from .corpus import Corpus
from .models import MODELS, make_model
from .sampling import NoiseSampler, keep_probability, noise_distribution
from .training import Schedule, Step, counted, run
from .vectors import WordVectors
from .vocabulary import Vocabulary
from .worker import open_tables, share

_FORMAT = "metagrad word2vec checkpoint 1"

_LOGITS = 1 << 24  # of a step with the full softmax, at most: 64 MB

CHOICES = {
    "model": tuple(dict.fromkeys(model for model, _ in MODELS)),
    "loss": tuple(dict.fromkeys(loss for _, loss in MODELS)),
    "collisions": ("skip", "redraw"),
}

# The C tool passes the gradient of a mean on to each of its words undivided. Ours is the derivative, so that CBOW
# takes a rate about as many times as large as a word has contexts, 0.05 · 6, less a margin for small vocabularies.
_LR = {"skipgram": 0.025, "cbow": 0.2}

Callback = Callable[["Word2Vec", int], "bool | None"]


@dataclasses.dataclass
class Word2Vec:
    """Word vectors by skip-gram or CBOW, trained on blocks.

    model: "skipgram", each context is predicted from the centre; or "cbow", the centre from the mean of its contexts.
    loss: "negatives", against noise words; "hierarchical", along a Huffman tree; or "softmax", against all words,
    which costs the size of the vocabulary a word.
    dim: numbers in a vector. window: the radius of each centre is drawn from 1 … window. negatives: noise words
    for each prediction. collisions: "skip" or "redraw", see BlockCutter. sample: frequent words are thinned out, as
    in the C tool; 0 keeps all. min_count, max_vocab: which words get vectors. epochs: passes over the text. lr: falls
    linearly, by words seen, to min_lr (a ten-thousandth of it); 0.025 for skip-gram and 0.2 for CBOW unless given.
    ns_exponent: noise words come in proportion to count^ns_exponent.
    seed: with one worker, the same seed gives the same vectors, bit for bit. workers: processes that train on
    the same tables, each on one core. device: "cpu" or "cuda:0"; a GPU takes one worker.
    step, stretch: words trained on at a time, and words that share noise words, at most; fewer where words that recur
        would move too far, see Schedule. Longer ones are faster and, beyond the defaults, a little worse.

    After training: `vocabulary`, `vectors`, `losses` (the mean loss of a prediction, for each epoch),
    `words_per_second` (kept words that were trained on, over all epochs).
    Raises ValueError for options that make no sense.
    """

    model: str = "skipgram"
    loss: str = "negatives"
    dim: int = 100
    window: int = 5
    negatives: int = 5
    collisions: str = "skip"
    sample: float = 1e-3
    min_count: int = 5
    max_vocab: int | None = None
    epochs: int = 5
    lr: float | None = None
    min_lr: float | None = None
    ns_exponent: float = 0.75
    seed: int = 1
    workers: int = 1
    device: str = "cpu"
    step: int = 1024
    stretch: int = 32

    def __post_init__(self) -> None:
        for name in ("dim", "window", "negatives", "epochs", "workers", "step", "stretch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, it must be at least 1")
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} is {getattr(self, name)!r}, it must be one of {', '.join(choices)}")
        self._lr = _LR[self.model] if self.lr is None else self.lr
        if not 0 < self._lr < math.inf:
            raise ValueError(f"lr is {self.lr}, it must be above 0")
        if self.min_lr is not None and not 0 <= self.min_lr <= self._lr:
            raise ValueError(f"min_lr is {self.min_lr}, it must be from 0 to lr, which is {self._lr}")
        for name in ("sample", "min_count", "seed"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}, it must be 0 or more")
        if self.max_vocab is not None and self.max_vocab < 1:
            raise ValueError(f"max_vocab is {self.max_vocab}, it must be at least 1, or None for all words")
        if not math.isfinite(self.ns_exponent):
            raise ValueError(f"ns_exponent is {self.ns_exponent}, it must be a finite number")
        if self.workers > 1 and self.device != "cpu":
            raise ValueError(f"{self.workers} workers share tables on the CPU only; a GPU takes workers=1")
        self._reset()

    def _reset(self) -> None:
        """What a training begins with."""
        self.vocabulary: Vocabulary
        self.losses: list[float] = []
        self.words_per_second = 0.0
        start, order = np.random.SeedSequence(self.seed).spawn(2)
        self._start, self._generator = np.random.default_rng(start), np.random.default_rng(order)
        self._state: dict[str, Any] = {"epoch": 0, "steps": 0, "totals": [0, 0, 0.0], "words": 0}

    def train(
        self,
        source: Any,
        checkpoint: str | os.PathLike[str] | None = None,
        minutes: float = 10.0,
        callbacks: Iterable[Callback] = (),
        progress: bool = True,
    ) -> WordVectors:
        """Train on a text: the path of a file (see Sentences), token lists, or a Corpus.

        checkpoint: a file written after each epoch and every so many minutes, from which `resume` goes on.
        callbacks: called as callback(self, epoch) after each epoch; one that returns True ends the training.
        Raises FloatingPointError when the loss runs away; the checkpoint is then the last good one.
        """
        self._reset()
        get_device(self.device)  # a device that is not there is said before the text is read
        with self.corpus_of(source, None, progress) as corpus:
            self.vocabulary = corpus.vocabulary
            self._model = self._new_model()
            self._model.input.weight.use_memory(self._start_rows(len(self.vocabulary)))
            return self._run(corpus, checkpoint, minutes, callbacks, progress)

    @classmethod
    def resume(
        cls,
        checkpoint: str | os.PathLike[str],
        source: Any,
        minutes: float = 10.0,
        callbacks: Iterable[Callback] = (),
        progress: bool = True,
    ) -> WordVectors:
        """Go on from a checkpoint, with its options and on the same text, as if the run had not been stopped.

        With one worker the vectors are bit for bit those of a run that was not.
        """
        return cls.from_checkpoint(checkpoint).go_on(source, checkpoint, minutes, callbacks, progress)

    def go_on(
        self,
        source: Any,
        checkpoint: str | os.PathLike[str] | None = None,
        minutes: float = 10.0,
        callbacks: Iterable[Callback] = (),
        progress: bool = True,
    ) -> WordVectors:
        """What `resume` does, of a trainer that came from a checkpoint."""
        get_device(self.device)
        with self.corpus_of(source, self.vocabulary, progress) as corpus:
            if len(corpus.ids) != self._state["text"]:
                raise ValueError(
                    f"the text has {len(corpus.ids):,} words of the vocabulary, the checkpoint's had "
                    f"{self._state['text']:,}: resume goes on with the same text"
                )
            return self._run(corpus, checkpoint, minutes, callbacks, progress)

    @classmethod
    def from_checkpoint(cls, checkpoint: str | os.PathLike[str], **changes: Any) -> Word2Vec:
        """The trainer as it was when it wrote the checkpoint. `vectors` is what it had learned.

        changes: options to go on with instead of the checkpoint's, such as lr, workers or device.
        """
        saved = load(checkpoint)
        if not isinstance(saved, dict) or saved.get("format") != _FORMAT:
            raise ValueError(f"{os.fspath(checkpoint)} is no checkpoint of a word2vec training")
        known = {field.name for field in dataclasses.fields(cls)}
        if strange := sorted({*changes, *saved["options"]} - known):
            raise ValueError(f"{os.fspath(checkpoint)}: {strange[0]!r} is no option of this version of Word2Vec")
        trainer = cls(**{**saved["options"], **changes})
        trainer.vocabulary = Vocabulary(saved["tokens"], saved["counts"])
        trainer._state, trainer.losses = saved["state"], list(saved["losses"])
        trainer._generator.bit_generator.state = saved["generator"]
        trainer._model = trainer._new_model()
        for table in ("input", "output"):
            getattr(trainer._model, table).weight.use_memory(saved["tables"][table])
        return trainer

    def train_more(
        self,
        source: Any,
        checkpoint: str | os.PathLike[str] | None = None,
        minutes: float = 10.0,
        callbacks: Iterable[Callback] = (),
        progress: bool = True,
    ) -> WordVectors:
        """Train what is there on another text, from `lr` down again; its new words of min_count get vectors too.

        Old words keep their ids, new ones come behind them. Counts add up. With a hierarchical loss the tree is that
        of the new counts, and the vectors of its nodes start from 0 again.
        """
        if isinstance(source, Corpus):
            raise TypeError("a Corpus has no words but those of its vocabulary: give train_more the text itself")
        with self._built(source, progress, min_count=1) as corpus:
            added = dict(zip(corpus.vocabulary.tokens, corpus.vocabulary.counts.tolist(), strict=True))
        old = self.vocabulary
        fresh = [token for token, count in added.items() if token not in old and count >= self.min_count]
        counts = [count + added.get(token, 0) for token, count in zip(old.tokens, old.counts.tolist(), strict=True)]
        self.vocabulary = Vocabulary([*old.tokens, *fresh], [*counts, *(added[token] for token in fresh)])
        before, self._model = self._model, self._new_model()
        tables = {"input": self._start_rows(len(fresh)), "output": np.zeros((len(fresh), self.dim), np.float32)}
        for name in tables if self.loss != "hierarchical" else ["input"]:
            rows = np.concatenate([getattr(before, name).weight.numpy(), tables[name]])
            getattr(self._model, name).weight.use_memory(rows)
        self._state = {"epoch": 0, "steps": 0, "totals": [0, 0, 0.0], "words": 0}
        with self.corpus_of(source, self.vocabulary, progress) as corpus:
            return self._run(corpus, checkpoint, minutes, callbacks, progress)

    def _new_model(self) -> Any:
        return make_model(self.model, self.loss, self.vocabulary.counts, self.dim)

    def _start_rows(self, n: int) -> np.ndarray:
        """n rows of the centre table as training starts from: U(−1/2d, 1/2d)."""
        return (self._start.random((n, self.dim), dtype=np.float32) - np.float32(0.5)) / np.float32(self.dim)

    @property
    def vectors(self) -> WordVectors:
        """The word vectors as they are now: the centre table."""
        return WordVectors(self.vocabulary.tokens, self._model.input.weight, self.vocabulary.counts)

    @contextlib.contextmanager
    def corpus_of(self, source: Any, vocabulary: Vocabulary | None = None, progress: bool = True) -> Iterator[Corpus]:
        """The text as a Corpus, with the ids of a vocabulary, or of one that is made of it."""
        if isinstance(source, Corpus):
            if vocabulary is not None and source.vocabulary != vocabulary:
                raise ValueError("the Corpus has another vocabulary than the checkpoint: give the text itself")
            yield source
            return
        chosen = {"min_count": self.min_count, "max_size": self.max_vocab} if vocabulary is None else {}
        with self._built(source, progress, vocabulary=vocabulary, **chosen) as corpus:
            yield corpus

    @staticmethod
    @contextlib.contextmanager
    def _built(source: Any, progress: bool, **options: Any) -> Iterator[Corpus]:
        """A Corpus in files, so that memory does not grow with the text. They go with the block."""
        with tempfile.TemporaryDirectory(prefix="metagrad-", ignore_cleanup_errors=True) as folder:
            yield Corpus.build(source, progress=progress, folder=folder, **options)

    def _run(
        self, corpus: Corpus, checkpoint: Any, minutes: float, callbacks: Iterable[Callback], progress: bool
    ) -> WordVectors:
        counts = self.vocabulary.counts
        keep = keep_probability(counts, self.sample).astype(np.float32)
        noise = noise_distribution(counts, self.ns_exponent, exclude=self.vocabulary.specials)
        self._schedule = self._plan(corpus.occurrences() * keep)
        self._state["text"] = len(corpus.ids)
        self._model.to(self.device)
        callbacks, saved_at, began, before = list(callbacks), time.monotonic(), time.monotonic(), self._state["words"]
        with self._engine(corpus, keep, noise) as epoch:
            stop = False
            while self._state["epoch"] < self.epochs and not stop:
                with self._bar(progress) as bar:
                    for _ in epoch():
                        self._report(bar)
                        if checkpoint is not None and time.monotonic() - saved_at > 60 * minutes:
                            self._save(checkpoint)
                            saved_at = time.monotonic()
                stop = self._end_epoch(callbacks, checkpoint)
        self.words_per_second = (self._state["words"] - before) / max(time.monotonic() - began, 1e-9)
        return self.vectors

    def _bar(self, progress: bool) -> tqdm:
        per_epoch = round(self._schedule.total / self.epochs)
        name = f"epoch {self._state['epoch'] + 1}/{self.epochs}"
        done = self._state["totals"][0]
        return tqdm(desc=name, total=per_epoch, initial=done, unit=" words", unit_scale=True, disable=not progress)

    def _report(self, bar: tqdm) -> None:
        words, predictions, loss = self._state["totals"]
        bar.set_postfix(loss=f"{loss / max(predictions, 1):.4f}", lr=f"{self._rate():.4g}", refresh=False)
        bar.update(words - bar.n)

    def _take(self, step: Step) -> None:
        """Note what was done."""
        totals = self._state["totals"]
        for i, value in enumerate(step):
            totals[i] += value
        self._state["words"] += step.words
        self._state["steps"] += 1

    def _rate(self) -> float:
        return self._schedule.rate(self._state["words"])

    def _plan(self, kept: np.ndarray) -> Schedule:
        """The schedule for words that occur so often in an epoch."""
        step = self.step if self.loss != "softmax" else max(min(self.step, _LOGITS // len(kept)), 1)
        return Schedule.of(
            self._lr,
            self._lr * 1e-4 if self.min_lr is None else self.min_lr,
            self.epochs,
            kept,
            longest=(step, self.stretch),
            predictions=self.window + 1 if self.model == "skipgram" else 1,  # a radius is half of window + 1 on average
            draws=self.negatives / BlockCutter.shared if self._model.noise else 0,
            tree=self.loss == "hierarchical",
            workers=self.workers,
        )

    def _end_epoch(self, callbacks: list[Callback], checkpoint: Any) -> bool:
        _, predictions, loss = self._state["totals"]
        if not predictions and not any(map(math.isfinite, self.losses)):
            raise ValueError(
                "nothing can be learned from this text: no word has a context, because sentences are of one word, or "
                "because sample thins out too much of so small a vocabulary"
            )
        self.losses.append(loss / predictions if predictions else math.nan)
        epoch = self._state["epoch"]
        self._state.update(epoch=epoch + 1, steps=0, totals=[0, 0, 0.0])
        if checkpoint is not None:
            self._epoch_state = self._generator.bit_generator.state
            self._save(checkpoint)
        answers = [callback(self, epoch) for callback in callbacks]
        return any(answers)

    def _save(self, checkpoint: Any) -> None:
        tables = {name: getattr(self._model, name).weight for name in ("input", "output")}
        if not all(np.isfinite(table.numpy()).all() for table in tables.values()):
            raise FloatingPointError(
                "a table is no longer finite; the checkpoint on disk is the last good one: lower lr"
            )
        save(
            {
                "format": _FORMAT,
                "options": dataclasses.asdict(self),
                "tokens": list(self.vocabulary.tokens),
                "counts": self.vocabulary.counts,
                "tables": tables,
                "state": self._state,
                "losses": self.losses,
                "generator": self._epoch_state,
            },
            checkpoint,
        )

    # Engines: a context that gives a function; each call of it trains one epoch and yields now and then -------

    def _engine(self, corpus: Corpus, keep: np.ndarray, noise: np.ndarray) -> Any:
        cutter: dict[str, Any] = {
            "window": self.window,
            "negatives": self.negatives if self._model.noise else 0,
            "predicts": self._model.predicts,
            "collisions": self.collisions,
        }
        if self.workers == 1:
            return self._alone(corpus, BlockCutter(NoiseSampler(noise), keep, **cutter))
        return self._together(corpus, {"keep": keep, "noise": noise, "counts": self.vocabulary.counts}, cutter)

    @contextlib.contextmanager
    def _alone(self, corpus: Corpus, cutter: BlockCutter) -> Iterator[Callable[[], Iterator[None]]]:
        """In this process. A resumed epoch is cut anew, as it was, and the steps that were done are skipped.

        Blocks are cut between steps, not by a thread ahead of them: two threads would wait for each other's
        hold on the interpreter longer (0.49 M words/s, measured) than the cutting takes (0.59 M).
        """

        def epoch() -> Iterator[None]:
            self._epoch_state = self._generator.bit_generator.state
            done, self._state["words"] = self._state["steps"], self._state["words"] - self._state["totals"][0]
            blocks = cutter.steps(
                corpus.ids, corpus.offsets, self._generator, lambda: self._schedule.sizes(self._state["words"])
            )
            steps = counted(blocks, cutter.predicts)
            for _ in range(done):
                self._state["words"] += next(steps).words
            last = time.monotonic()
            for step in run(self._model, steps, self._rate):
                self._take(step)
                if time.monotonic() - last > 0.2:
                    last = time.monotonic()
                    yield
            yield

        yield epoch

    @contextlib.contextmanager
    def _together(
        self, corpus: Corpus, arrays: dict[str, np.ndarray], cutter: dict[str, Any]
    ) -> Iterator[Callable[[], Iterator[None]]]:
        """In worker processes on the same tables, which lie in a folder in memory where the system has one."""
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
        with tempfile.TemporaryDirectory(prefix="metagrad-", dir=memory) as name, contextlib.ExitStack() as stack:
            folder = Path(name)
            text = corpus.folder
            if text is None:
                text, arrays = folder, {**arrays, "ids": corpus.ids, "offsets": corpus.offsets}
            for key, array in arrays.items():
                np.save(folder / f"{key}.npy", array)
            np.save(folder / "input.npy", self._model.input.weight.numpy())
            np.save(folder / "output.npy", self._model.output.weight.numpy())
            np.save(folder / "progress.npy", np.zeros((self.workers, 3)))
            options = {
                "text": str(text),
                "model": [self.model, self.loss, self.dim],
                "cutter": cutter,
                "schedule": dataclasses.asdict(self._schedule),
                "seed": self.seed,
            }
            (folder / "options.json").write_text(json.dumps(options))
            tables = open_tables(folder)
            share(self._model, tables)
            processes = [stack.enter_context(_worker(folder, k, self.workers)) for k in range(self.workers)]
            yield lambda: self._watched(processes, tables["progress"])
            for table in ("input", "output"):  # the folder goes, the tables stay
                weight = getattr(self._model, table).weight
                weight.use_memory(weight.data.copy())

    def _watched(self, processes: list[subprocess.Popen], progress: np.ndarray) -> Iterator[None]:
        """One epoch of all workers: what they did together is noted five times a second.

        A resumed epoch begins anew, on the tables as they were.
        """
        totals = self._state["totals"]
        self._state["words"] -= totals[0]
        totals[:] = [0, 0, 0.0]
        progress[0, 0] += self._state["words"] - progress[:, 0].sum()
        self._epoch_state = self._generator.bit_generator.state
        before = progress.sum(axis=0)
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(f"epoch {self._state['epoch']}\n")
            process.stdin.flush()
        waiting = list(processes)
        while waiting:
            time.sleep(0.2)
            waiting = [process for process in waiting if not _has_answered(process)]
            now = progress.sum(axis=0)
            words, pairs, loss = now - before
            self._take(Step(int(words), int(pairs), float(loss)))
            before = now
            yield


@contextlib.contextmanager
def _worker(folder: Path, part: int, parts: int) -> Iterator[subprocess.Popen]:
    """A worker process, with one BLAS thread; it ends with the block."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    place = str(Path(__file__).parents[2])
    path = os.pathsep.join([place, *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [sys.executable, "-c", "from metagrad.word2vec.worker import main; main()", str(folder), str(part), str(parts)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **threads, "PYTHONPATH": path},
    )
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _has_answered(process: subprocess.Popen) -> bool:
    """Whether a worker is through with its epoch. Raises what stopped it."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if line.startswith("error "):
        raise FloatingPointError(line.removeprefix("error ").strip())
    if not line and process.poll() is not None:
        raise RuntimeError(f"a worker process ended with exit code {process.returncode}; its messages stand above")
    return line.startswith("done")
