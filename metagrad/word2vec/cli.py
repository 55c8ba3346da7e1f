"""The command line: `metagrad-word2vec`, or `python -m metagrad.word2vec`.

Results go to standard output, everything else to standard error. Exit codes: 0 it worked; 1 it did not, and one
sentence says why; 2 the command was not understood; 130 stopped by Ctrl-C, 143 by SIGTERM, 129 by a closed terminal.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import os
import shlex
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from ..cuda import get_device
from ..files import check_target
from ..serialization import is_archive
from . import vector_files
from .corpus import Corpus, Sentences
from .evaluation import evaluate_analogies, evaluate_pairs, holds_analogies
from .plot import plot_loss, plot_words
from .texts import TEXTS, embedded_text, load_text
from .trainer import CHOICES, Word2Vec
from .vectors import UnknownTokenError, WordVectors
from .vocabulary import Vocabulary

_FORMATS = f"{', '.join(vector_files.ENDINGS)}, some of them with .gz"

_CORPUS_HELP = (
    "text file, one sentence a line, words between spaces, also .gz, .bz2, .xz; - for standard input; or a known "
    f"text unless a file is called so: embedded (English about programming, without a download), {', '.join(TEXTS)}"
)

# What the options of Word2Vec mean; their names, types and defaults are the dataclass's own.
_OPTIONS = {
    "model": "skipgram predicts the contexts from a word, cbow the word from its contexts",
    "loss": "how: against noise words, along a Huffman tree, or against all words (slow)",
    "dim": "numbers in a vector",
    "window": "words on each side that are contexts, at most: a radius from 1 to this is drawn for each word",
    "negatives": "noise words for each prediction",
    "collisions": "a noise word that is to be predicted: leave it out there, or draw anew",
    "sample": "frequent words are thinned out, the more the smaller this is; 0 keeps all",
    "min_count": "words that are rarer get no vector",
    "max_vocab": "keep only so many words, the most frequent",
    "epochs": "passes over the text",
    "lr": "learning rate at the start",
    "min_lr": "learning rate at the end",
    "ns_exponent": "noise words come in proportion to count to this power",
    "seed": "of everything random: with one worker, the same seed gives the same vectors",
    "workers": "processes that train on the same tables",
    "device": "cpu or cuda:0 (which takes one worker)",
    "step": "words trained on at a time, at most",
    "stretch": "words in a row that share noise words, at most",
}

_DEFAULTS = {  # that depend on others
    "max_vocab": "all",
    "lr": "0.025 for skipgram, 0.2 for cbow",
    "min_lr": "a ten-thousandth of that at the start",
}
_CHANGES = ("lr", "workers", "device")  # of these, which `resume` may change

# Errors of the package advise in Python; these are the same words for the shell.
_IN_THE_SHELL = {
    "give format=,": "rename it, or `convert` it with --from-format or --to-format,",
    'format="glove"': "--from-format glove",
    'errors="replace"': "--errors replace",
    "allow_nonfinite=True": "--allow-nonfinite",
    "workers=1": "--workers 1",
}

_EPILOG = """\
Train on a text, one sentence a line, words between spaces, and ask for neighbours:

  metagrad-word2vec train text.txt words.vec --workers 2
  metagrad-word2vec neighbours words.vec paris berlin
  metagrad-word2vec analogy words.vec man king woman

`metagrad-word2vec COMMAND --help` explains a command and its options."""


class _ReaderGone(Exception):
    """Whoever read standard output has stopped, as `head` does."""


class _Ended(KeyboardInterrupt):
    """Another signal that ends a training in order, as Ctrl-C does."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    _speak_utf8()
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: _say(f"metagrad-word2vec: {message}")
        try:
            try:
                options = _parser().parse_args(arguments)
                return options.run(options) or 0
            finally:
                _flush()
        except _ReaderGone:
            return 0
        except KeyboardInterrupt as stop:
            return 128 + (stop.args[0] if isinstance(stop, _Ended) else signal.SIGINT)
        except (OSError, ValueError, LookupError, ArithmeticError, ImportError, RuntimeError, MemoryError) as error:
            _say(f"metagrad-word2vec: {_sentence(error)}")
            return 1


# Commands: each gets the parsed options ---------------------------------------------------------------------------


def train(options: argparse.Namespace) -> None:
    _check_files(options)
    if options.checkpoint and os.path.exists(options.checkpoint):
        raise FileExistsError(
            f"the checkpoint {options.checkpoint} is there already: go on from it with `{_resume_line(options)}`, "
            "or remove it"
        )
    chosen = {name: getattr(options, name) for name in _OPTIONS if getattr(options, name) is not None}
    trainer = Word2Vec(**chosen)
    get_device(trainer.device)
    with (
        _saying_how_to_go_on(options),
        _text(options.corpus) as text,
        trainer.corpus_of(text, progress=_is_terminal(sys.stderr)) as corpus,
    ):
        _check_words(corpus, options.vectors)
        _say(f"{len(corpus.ids):,} words in {len(corpus):,} sentences, {len(corpus.vocabulary):,} different ones")
        _save(trainer, trainer.train(corpus, **_training(options)), options.vectors)


def resume(options: argparse.Namespace) -> None:
    _check_readable(options.checkpoint)
    _check_files(options)
    changes = {name: getattr(options, name) for name in _CHANGES if getattr(options, name) is not None}
    trainer = Word2Vec.from_checkpoint(options.checkpoint, **changes)
    with _saying_how_to_go_on(options), _text(options.corpus) as text:
        _save(trainer, trainer.go_on(text, **_training(options)), options.vectors)


def neighbours(options: argparse.Namespace) -> int:
    vectors = _loaded(options.vectors)
    missing = 0
    asked = options.words or _typed("word> ")
    for query in asked:
        for word in [query] if query in vectors else query.split():  # a word of some vectors holds spaces
            try:
                found = vectors.most_similar(word, topn=options.topn, restrict=options.restrict)
            except UnknownTokenError as error:
                _say(str(error))
                missing += 1
            else:
                for neighbour, score in found:
                    _print(f"{word}\t{neighbour}\t{score:.4f}")
    return int(bool(missing and options.words))


def analogy(options: argparse.Namespace) -> None:
    vectors = _loaded(options.vectors)
    ask = vectors.cosmul if options.cosmul else vectors.most_similar
    positive, negative = [options.b, options.c], [options.a]
    for word, score in ask(positive, negative, topn=options.topn, restrict=options.restrict):
        _print(f"{word}\t{score:.4f}")


def evaluate(options: argparse.Namespace) -> None:
    vectors = _loaded(options.vectors)
    for file in options.files:
        _print(f"{file}:")
        if holds_analogies(file):
            _print(str(evaluate_analogies(vectors, file, restrict=options.restrict, lower=not options.case)))
        else:
            _print(str(evaluate_pairs(vectors, file, lower=not options.case)))


def convert(options: argparse.Namespace) -> None:
    check_target(options.target)
    vector_files.format_of(options.target, options.to_format)
    vectors = _loaded(options.source, options.from_format, options.errors)
    vectors.save(options.target, options.to_format, allow_nonfinite=options.allow_nonfinite)
    _say(f"{len(vectors):,} words of {vectors.dim} numbers: {options.target}")


def plot(options: argparse.Namespace) -> None:
    check_target(options.picture)
    if not Path(options.picture).suffix:
        raise ValueError(f"the ending of {options.picture} names no format: .png, .svg or .pdf, say")
    trainer = _checkpoint_at(options.source)
    if trainer is not None and not options.words:
        plot_loss(trainer.losses, options.picture)
    else:
        vectors = _loaded(options.source) if trainer is None else trainer.vectors
        plot_words(vectors, options.words or vectors.tokens[:60], options.picture)
    _say(f"picture: {options.picture}")


def info(options: argparse.Namespace) -> None:
    if (trainer := _checkpoint_at(options.file)) is not None:
        rows = {
            "checkpoint": f"{len(trainer.losses)} of {trainer.epochs} epochs done",
            "words": f"{len(trainer.vocabulary):,}",
            "losses": " ".join(f"{loss:.4f}" for loss in trainer.losses) or "none yet",
            **{name: str(value) for name, value in dataclasses.asdict(trainer).items()},
        }
    elif (vocabulary := _vocabulary_at(options.file)) is not None:
        rows = {
            "vocabulary": f"{len(vocabulary):,} words",
            "tokens": f"{vocabulary.counts.sum():,}",
            "first words": " ".join(vocabulary.tokens[:10]),
        }
    else:
        vectors = _loaded(options.file)
        rows = {
            "vectors": f"{len(vectors):,} words of {vectors.dim} numbers, float32",
            "counts": "none" if vectors.counts is None else f"{vectors.counts.sum():,} in all",
            "first words": " ".join(vectors.tokens[:10]),
        }
    for name, value in rows.items():
        _print(f"{name}\t{value}")


# What the commands share ------------------------------------------------------------------------------------------


def _training(options: argparse.Namespace) -> dict[str, Any]:
    on_terminal = _is_terminal(sys.stderr)
    callbacks: list[Callable[[Word2Vec, int], None]] = [] if on_terminal else [_report]
    if options.evaluate:
        callbacks.append(lambda trainer, epoch: _evaluate_epoch(trainer, options.evaluate))
    return {
        "checkpoint": options.checkpoint,
        "minutes": options.minutes,
        "callbacks": callbacks,
        "progress": on_terminal,
    }


def _report(trainer: Word2Vec, epoch: int) -> None:
    _say(f"epoch {epoch + 1}/{trainer.epochs}  loss {trainer.losses[-1]:.4f}")


def _evaluate_epoch(trainer: Word2Vec, files: Sequence[str]) -> None:
    vectors = trainer.vectors
    for file in files:
        _say(f"  {file}: {_test(vectors, file)}")


def _test(vectors: WordVectors, file: str) -> str:
    """A result in a line."""
    if holds_analogies(file):
        return f"{100 * evaluate_analogies(vectors, file).accuracy:.1f} % of the analogies"
    return str(evaluate_pairs(vectors, file))


def _save(trainer: Word2Vec, vectors: WordVectors, path: str) -> None:
    vectors.save(path)
    _say(
        f"{len(vectors):,} words of {vectors.dim} numbers in {path}; loss {trainer.losses[-1]:.4f}, "
        f"{trainer.words_per_second:,.0f} words/s"
    )


@contextlib.contextmanager
def _text(name: str) -> Iterator[Sentences]:
    """What is to be trained on: a file, a text known by name, or `-` or a pipe, which is kept in a file meanwhile."""
    if name == "-" or _is_pipe(name):
        with _folder() as folder:
            path = Path(folder, "standard-input" if name == "-" else "pipe")
            with open(path, "wb") as file, _bytes_of(name) as pipe:
                shutil.copyfileobj(pipe, file)
            yield Sentences(path)
    elif os.path.exists(name):
        _check_readable(name)
        yield Sentences(name)
    elif name == "embedded":
        yield embedded_text()
    elif name in TEXTS:
        yield Sentences(load_text(name, progress=_is_terminal(sys.stderr)))
    else:
        raise FileNotFoundError(f"there is no file {name}, and no known text: embedded, {', '.join(TEXTS)}")


def _is_pipe(name: str) -> bool:
    return os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name)


def _bytes_of(pipe: str) -> contextlib.AbstractContextManager[Any]:
    if pipe != "-":
        return open(pipe, "rb")
    if sys.stdin is None:
        raise ValueError("standard input is closed, so there is no text")
    return contextlib.nullcontext(sys.stdin.buffer)


def _folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="metagrad-", ignore_cleanup_errors=True)


def _check_files(options: argparse.Namespace) -> None:
    """Find, before hours are spent, what would keep results from being written, or write them over something else."""
    vector_files.format_of(options.vectors)
    names: dict[str, str] = {}
    for name in ("corpus", "vectors", "checkpoint"):
        if path := getattr(options, name):
            other = names.setdefault(os.path.realpath(path), name)
            if other != name:
                raise ValueError(f"{path} is given as {other} and as {name}: one would be written over the other")
            if name != "corpus":
                check_target(path)
    for file in options.evaluate or []:
        _test(WordVectors(["word"], [[1.0]]), file)


def _check_words(corpus: Corpus, target: str) -> None:
    """Find words that the format of the target cannot hold, by writing them with vectors of one number."""
    tokens = corpus.vocabulary.tokens
    with _folder() as folder:
        WordVectors(tokens, np.zeros((len(tokens), 1))).save(Path(folder, Path(target).name))


@contextlib.contextmanager
def _saying_how_to_go_on(options: argparse.Namespace) -> Iterator[None]:
    """Where a training is stopped, say what there is of it.

    SIGTERM and a terminal that closes stop it as Ctrl-C does, so that its workers end and its temporary files go.
    """

    def end(number: int, _: object) -> None:
        raise _Ended(number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]  # nohup ignores SIGHUP
    for number in numbers:
        signal.signal(number, end)
    try:
        yield
    except KeyboardInterrupt:
        if not options.checkpoint:
            _say("stopped; nothing is kept without --checkpoint")
        elif not os.path.exists(options.checkpoint):
            _say("stopped before the first checkpoint was written")
        else:
            _say(f"stopped; go on with: {_resume_line(options)}")
        raise
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _resume_line(options: argparse.Namespace) -> str:
    return f"metagrad-word2vec resume {shlex.join([options.checkpoint, options.corpus, options.vectors])}"


def _loaded(path: str, format: str | None = None, errors: str = "strict") -> WordVectors:
    _check_readable(path)
    return WordVectors.load(path, format, errors=errors)


def _check_readable(path: str) -> None:
    """OSError where there is no such file, before anything is made of its ending."""
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder, where a file is due")
    with open(path, "rb"):
        pass


def _checkpoint_at(path: str) -> Word2Vec | None:
    _check_readable(path)
    return Word2Vec.from_checkpoint(path) if is_archive(path) else None


def _vocabulary_at(path: str) -> Vocabulary | None:
    """A file of words with their counts; a first line of two numbers is the header of vectors."""
    if vector_files.ENDINGS.get(Path(path).suffix, "text") != "text":
        return None
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        first = file.readline(1 << 16).split()
    is_count = len(first) in (2, 3) and first[1].isdecimal() and not first[0].isdecimal()
    return Vocabulary.load(path) if is_count and (len(first) == 2 or not _is_number(first[2])) else None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _typed(prompt: str) -> Iterator[str]:
    """The lines of standard input, asked for where someone sits in front of it."""
    if not _is_terminal(sys.stdin):
        yield from (line.strip(" \t\r\n") for line in sys.stdin or ())
        return
    try:
        while True:
            _say(prompt, end="")
            line = sys.stdin.readline()
            if not line:
                return
            yield line.strip(" \t\r\n")
    finally:
        _say("")  # what comes next begins a line of its own


# The streams: any of them may be closed, or end in a pipe that nobody reads any more -------------------------------


def _print(line: str) -> None:
    if sys.stdout is not None:
        with _writing():
            print(line, flush=True)


def _flush() -> None:
    """Write out what argparse printed: at exit, Python would show a traceback if that failed."""
    if sys.stdout is not None:
        with _writing():
            sys.stdout.flush()


@contextlib.contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        _discard(sys.stdout)
        if isinstance(error, BrokenPipeError):
            raise _ReaderGone from error
        raise OSError(f"standard output cannot be written to: {error.strerror}") from error


def _say(line: str, end: str = "\n") -> None:
    """A line on standard error. A training goes on if nobody reads it."""
    if sys.stderr is not None:
        try:
            print(line, end=end, file=sys.stderr, flush=True)
        except OSError:
            _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Send where nothing is lost what is still in the buffer: Python would fail on it again when it closes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _speak_utf8() -> None:
    """Whatever the locale says, as the files do. What is no UTF-8, as in a file's name, passes as it is."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="surrogateescape")


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    message = str(error) or type(error).__name__
    for python, shell in _IN_THE_SHELL.items():
        message = message.replace(python, shell)
    return message


# The parser -------------------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="metagrad-word2vec",
        description="Word vectors: train, ask, test, convert, draw.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(run: Callable, summary: str, description: str, example: str) -> argparse.ArgumentParser:
        name = run.__name__
        made = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}. {description}",
            epilog=f"example:\n  metagrad-word2vec {name} {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.set_defaults(run=run)
        return made

    _add_training_commands(command)
    _add_question_commands(command)
    _add_file_commands(command)
    return parser


def _add_training_commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    made = command(
        train, "train vectors on a text",
        "It reports the loss of each epoch, and at the end the speed in words that thinning out left.",
        "text.txt.gz words.vec --dim 100 --workers 2 --checkpoint run.npz",
    )  # fmt: skip
    made.add_argument("corpus", metavar="CORPUS", help=_CORPUS_HELP)
    made.add_argument("vectors", metavar="VECTORS", help=f"file for the vectors ({_FORMATS})")
    for field in dataclasses.fields(Word2Vec):
        _add_option(made, field, _DEFAULTS.get(field.name, str(field.default)))
    made.add_argument("--checkpoint", metavar="FILE", help="a new file, written as training goes on, for `resume`")
    _add_training_options(made)

    made = command(
        resume, "go on with a training that was stopped",
        "With the options of the checkpoint, on the same text; with one worker the vectors are bit for bit those of "
        "a run that was not stopped.",
        "run.npz text.txt.gz words.vec",
    )  # fmt: skip
    made.add_argument("checkpoint", metavar="CHECKPOINT", help="file that `train --checkpoint` wrote")
    made.add_argument("corpus", metavar="CORPUS", help="the text that the training began with")
    made.add_argument("vectors", metavar="VECTORS", help=f"file for the vectors ({_FORMATS})")
    for field in dataclasses.fields(Word2Vec):
        if field.name in _CHANGES:
            _add_option(made, field, "the checkpoint's")
    _add_training_options(made)


def _add_question_commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    made = command(
        neighbours, "the words nearest to a word",
        "Without WORDs it reads them from standard input, one or several a line. A line of the answer is: word, "
        "neighbour, cosine, with tabs between.",
        "words.vec paris berlin --topn 5 | cut -f 2",
    )  # fmt: skip
    made.add_argument("vectors", metavar="VECTORS", help="file of any known format")
    made.add_argument("words", metavar="WORD", nargs="*", type=_word)
    _add_search_options(made)

    made = command(
        analogy, "what is to C as B is to A",
        "The nearest words to B − A + C, none of which is an answer. A line is: word, score, with a tab between.",
        "words.vec man king woman",
    )  # fmt: skip
    made.add_argument("vectors", metavar="VECTORS", help="file of any known format")
    for name in "abc":
        made.add_argument(name, metavar=name.upper(), type=_word)
    made.add_argument("--cosmul", action="store_true", help="multiply similarities (3CosMul) instead of adding them")
    _add_search_options(made)

    made = command(
        evaluate, "test vectors on files of word pairs with scores, and of analogies",
        "Word pairs as WordSim-353 and SimLex-999 have them; analogies as questions-words.txt, in sections that "
        "begin with a line ': name'. Lines with unknown words are counted and left out.",
        "words.vec wordsim353.tsv questions-words.txt",
    )  # fmt: skip
    made.add_argument("vectors", metavar="VECTORS", help="file of any known format")
    made.add_argument("files", metavar="FILE", nargs="+")
    made.add_argument("--restrict", type=_count, metavar="N", default=30_000, help="for analogies: only the first N "
                      "words are known and searched (default: 30000)")  # fmt: skip
    made.add_argument("--case", action="store_true", help="tell upper and lower case apart")


def _add_file_commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    made = command(
        convert, "write vectors in another format",
        f"By the files' endings: {_FORMATS}. float32 values survive every format bit for bit.",
        "GoogleNews.bin.gz news.npy",
    )  # fmt: skip
    made.add_argument("source", metavar="SOURCE")
    made.add_argument("target", metavar="TARGET")
    made.add_argument("--from-format", choices=vector_files.FORMATS, help="if SOURCE's ending does not say it")
    made.add_argument("--to-format", choices=vector_files.FORMATS, help="if TARGET's ending does not say it")
    made.add_argument("--errors", choices=["strict", "replace"], default="strict", help="of words that are not UTF-8")
    made.add_argument("--allow-nonfinite", action="store_true", help="write vectors that hold NaN or infinity")

    made = command(
        plot, "draw words where their two principal components put them, or the loss of a checkpoint",
        "The picture's format is its ending's (.png, .svg, .pdf). Needs matplotlib: pip install 'metagrad[plot]'.",
        "words.vec words.png paris berlin france germany",
    )  # fmt: skip
    made.add_argument("source", metavar="SOURCE", help="vectors, or a checkpoint; of this, without WORDs, the losses")
    made.add_argument("picture", metavar="PICTURE")
    made.add_argument("words", metavar="WORD", nargs="*", type=_word, help="default: the first 60 of the file")

    made = command(
        info, "what is in a file of vectors, a checkpoint or a vocabulary",
        "A line is: name, value, with a tab between.",
        "run.npz",
    )  # fmt: skip
    made.add_argument("file", metavar="FILE")


def _add_option(parser: argparse.ArgumentParser, field: dataclasses.Field, default: str) -> None:
    """An option of Word2Vec as one of the command line."""
    kind = {"int": int, "float": float, "str": str}[str(field.type).split(" ")[0]]
    choices = CHOICES.get(field.name)
    metavar = None if choices else {int: "N", float: "X", str: "NAME"}[kind]
    flag = f"--{field.name.replace('_', '-')}"
    parser.add_argument(
        flag,
        type=kind,
        choices=choices,
        metavar=metavar,
        help=f"{_OPTIONS[field.name]} (default: {default})".replace("%", "%%"),
    )


def _add_training_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=10, metavar="X", help="between checkpoints (default: 10)")
    parser.add_argument(
        "--evaluate", nargs="+", metavar="FILE", help="test the vectors after each epoch, see `evaluate`"
    )


def _add_search_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topn", type=_count, default=10, metavar="N", help="answers (default: 10)")
    parser.add_argument("--restrict", type=_count, metavar="N", help="search only the first N words of the file")


def _word(argument: str) -> str:
    """A word as files have it: Python decodes the command line by the locale."""
    return os.fsencode(argument).decode("utf-8", "surrogateescape")


def _count(text: str) -> int:
    """A whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1")
    return int(text)
