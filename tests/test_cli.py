"""The command line: what it writes where, how it ends, and what it says to those who mistype."""

import contextlib
import dataclasses
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from metagrad.word2vec import Vocabulary, Word2Vec, WordVectors
from metagrad.word2vec.cli import main

ROOT = Path(__file__).parents[1]
TOPICS = [["red", "green", "blue", "pink"], ["cat", "dog", "cow", "观音"], ["one", "two", "three", "four"]]
FAST = ["--dim", "8", "--epochs", "2", "--sample", "0"]


@pytest.fixture
def corpus(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "text.txt"
    path.write_text("".join(" ".join(rng.choice(TOPICS[i % 3], 8)) + "\n" for i in range(300)), encoding="utf-8")
    return str(path)


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "words.vec"
    table = np.array([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9], [0.7, 0.7]], np.float32)
    WordVectors(["king", "queen", "man", "woman", "new"], table, [9, 8, 7, 6, 5]).save(path)
    return str(path)


def run(*arguments, input=None, env=None, **options):
    return subprocess.run(
        [sys.executable, "-m", "metagrad.word2vec", *map(str, arguments)],
        input=input, capture_output=True, cwd=ROOT, env={**os.environ, **(env or {})}, **options,
    )  # fmt: skip


def buffered():
    """The environment of a process that holds back its output, as Python does unless told otherwise."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": ""}


def test_train_writes_vectors_and_reports_on_standard_error(corpus, tmp_path, capsys):
    out = tmp_path / "words.vec"
    assert main(["train", corpus, str(out), *FAST, "--seed", "3"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert re.search(r"epoch 1/2  loss \d\.\d+\nepoch 2/2  loss", said.err) and "12 words of 8 numbers" in said.err
    trainer = Word2Vec(dim=8, epochs=2, sample=0, seed=3)
    np.testing.assert_array_equal(WordVectors.load(out).vectors, trainer.train(corpus, progress=False).vectors)


def test_every_option_of_the_trainer_is_one_of_the_command(corpus, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for field in dataclasses.fields(Word2Vec):
        assert f"--{field.name.replace('_', '-')} " in text
        if field.default is not None:
            assert f"(default: {field.default})" in text
    options = ["--model", "cbow", "--loss", "hierarchical", "--max-vocab", "7", "--lr", "0.1", "--min-lr", "0.01"]
    checkpoint = tmp_path / "run.npz"
    assert main(["train", corpus, str(tmp_path / "w.bin"), *FAST, *options, "--checkpoint", str(checkpoint)]) == 0
    trainer = Word2Vec.from_checkpoint(checkpoint)
    assert (trainer.model, trainer.loss, trainer.lr, len(trainer.vocabulary)) == ("cbow", "hierarchical", 0.1, 7)


@pytest.mark.parametrize("name", ["train", "resume", "neighbours", "analogy", "evaluate", "convert", "plot", "info"])
def test_help_of_each_command_has_an_example_that_parses(name, capsys, monkeypatch):
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    text = capsys.readouterr().out
    assert end.value.code == 0
    example = text.split("example:\n  metagrad-word2vec ")[1].split("\n")[0].split(" | ")[0]
    called = []
    stub = called.append
    monkeypatch.setattr(
        f"metagrad.word2vec.cli.{name}", type(name, (), {"__new__": lambda cls, options: stub(options)})
    )
    assert main(example.split()) == 0 and len(called) == 1


def test_neighbours_answers_in_columns(vectors, capsys):
    assert main(["neighbours", vectors, "king", "man", "--topn", "2"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[:2] for row in rows] == [["king", "queen"], ["king", "new"], ["man", "woman"], ["man", "new"]]
    assert float(rows[0][2]) == pytest.approx(0.9939, abs=1e-4)


def test_neighbours_goes_on_after_an_unknown_word_and_says_so_at_the_end(vectors, capsys):
    assert main(["neighbours", vectors, "kind", "man", "--topn", "1"]) == 1
    said = capsys.readouterr()
    assert said.out.startswith("man\twoman") and "'kind'" in said.err and "spellings: king" in said.err


def test_words_and_names_are_utf8_in_any_locale(tmp_path):
    path = tmp_path / "向量.vec"
    WordVectors(["观音", "é", "菩萨"], np.eye(3, dtype=np.float32)).save(path)
    ascii_locale = {"LC_ALL": "C", "PYTHONUTF8": "0"}
    typed = "观音 nobody\n\né\n".encode() + b"\xff\n" + "观音".encode()
    done = run("neighbours", path, "--topn", "1", input=typed, env=ascii_locale)
    assert done.returncode == 0, "without words on the command line, an unknown one is no failure"
    assert [line.split("\t")[0] for line in done.stdout.decode().splitlines()] == ["观音", "é", "观音"]
    said = done.stderr.decode()
    assert "nobody" in said and len(said.splitlines()) == 2 and "word>" not in said
    done = run("neighbours", path, "观音", "观", "--topn", "1", env=ascii_locale)
    assert done.stdout.decode().startswith("观音\t") and "spellings: 观音" in done.stderr.decode()
    assert f"metagrad-word2vec: {path}x: No such file" in run("info", f"{path}x", env=ascii_locale).stderr.decode()


def test_a_word_may_hold_a_space(tmp_path, capsys):
    WordVectors(["new york", "new", "york"], np.eye(3, dtype=np.float32)).save(tmp_path / "v.npz")
    assert main(["neighbours", str(tmp_path / "v.npz"), "new york", "york new", "--topn", "1"]) == 0
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == ["new york", "york", "new"]


def test_a_warning_is_a_sentence(tmp_path, capsys):
    (tmp_path / "twice.vec").write_text("a 1 2\nb 2 1\na 3 3\n")
    assert main(["neighbours", str(tmp_path / "twice.vec"), "a"]) == 0
    said = capsys.readouterr().err
    assert said.startswith("metagrad-word2vec: ") and "repeat a token, such as 'a'" in said and said.count("\n") == 1


def test_analogy(vectors, capsys):
    assert main(["analogy", vectors, "man", "king", "woman", "--topn", "1"]) == 0
    assert capsys.readouterr().out.startswith("queen\t")
    assert main(["analogy", vectors, "man", "king", "woman", "--topn", "1", "--cosmul"]) == 0
    assert capsys.readouterr().out.startswith("queen\t")


def test_evaluate_tells_the_kinds_of_file_apart(vectors, tmp_path, capsys):
    pairs, analogies = tmp_path / "pairs.tsv", tmp_path / "analogies.txt"
    pairs.write_text("king\tqueen\t9\nking\tman\t2\nking\tnew\t5\nking\tother\t1\n")
    analogies.write_text(": family\nman king woman queen\nman king nobody queen\n")
    assert main(["evaluate", vectors, str(pairs), str(analogies)]) == 0
    out = capsys.readouterr().out
    assert "Spearman 1.000" in out and "3 of 4 pairs" in out and "100.0 %  1 of 1 (1 with unknown words)" in out


def test_an_evaluation_follows_each_epoch(corpus, tmp_path, capsys):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("red\tgreen\t9\nred\tcat\t2\ncat\tone\t1\n")
    assert main(["train", corpus, str(tmp_path / "w.vec"), *FAST, "--evaluate", str(pairs)]) == 0
    assert capsys.readouterr().err.count("Spearman") == 2


@pytest.mark.parametrize("ending", [".txt", ".glove", ".bin", ".bin.gz", ".npz", ".npy"])
def test_convert_keeps_every_bit(vectors, tmp_path, ending):
    there, back = tmp_path / f"there{ending}", tmp_path / "back.vec"
    assert main(["convert", vectors, str(there)]) == 0 and main(["convert", str(there), str(back)]) == 0
    assert back.read_bytes() == Path(vectors).read_bytes()


def test_convert_takes_formats_that_endings_do_not_say(vectors, tmp_path):
    target = tmp_path / "vectors.data"
    assert main(["convert", vectors, str(target), "--to-format", "binary"]) == 0
    assert main(["convert", str(target), str(tmp_path / "back.vec"), "--from-format", "binary"]) == 0
    assert (tmp_path / "back.vec").read_bytes() == Path(vectors).read_bytes()


def test_info_knows_vectors_checkpoints_and_vocabularies(vectors, corpus, tmp_path, capsys):
    assert main(["info", vectors]) == 0
    assert "vectors\t5 words of 2 numbers, float32\n" in capsys.readouterr().out
    checkpoint = str(tmp_path / "run.checkpoint")
    main(["train", corpus, str(tmp_path / "w.npz"), *FAST, "--checkpoint", checkpoint])
    capsys.readouterr()
    assert main(["info", checkpoint]) == 0
    out = capsys.readouterr().out
    assert "checkpoint\t2 of 2 epochs done\n" in out and "dim\t8\n" in out and "model\tskipgram\n" in out
    assert main(["info", str(tmp_path / "w.npz")]) == 0
    assert "vectors\t12 words of 8 numbers" in capsys.readouterr().out
    Vocabulary(["the", "cat"], [5, 2]).save(tmp_path / "vocabulary.txt")
    assert main(["info", str(tmp_path / "vocabulary.txt")]) == 0
    assert capsys.readouterr().out == "vocabulary\t2 words\ntokens\t7\nfirst words\tthe cat\n"


def test_plot_draws_words_and_losses_or_says_what_to_install(vectors, corpus, tmp_path, capsys):
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        assert main(["plot", vectors, str(tmp_path / "p.png")]) == 1
        assert "metagrad[plot]" in capsys.readouterr().err
        return
    assert main(["plot", vectors, str(tmp_path / "p.png"), "king", "man", "new"]) == 0
    main(["train", corpus, str(tmp_path / "w.vec"), *FAST, "--checkpoint", str(tmp_path / "run.npz")])
    assert main(["plot", str(tmp_path / "run.npz"), str(tmp_path / "loss.png")]) == 0
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in ("p.png", "loss.png"))


def test_standard_input_is_a_text(corpus, tmp_path):
    done = run("train", "-", tmp_path / "a.vec", *FAST, input=Path(corpus).read_bytes())
    assert done.returncode == 0 and done.stdout == b"" and b"\r" not in done.stderr, "no bar without a terminal"
    assert main(["train", corpus, str(tmp_path / "b.vec"), *FAST]) == 0
    assert (tmp_path / "a.vec").read_bytes() == (tmp_path / "b.vec").read_bytes()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_is_a_text(corpus, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[Path(corpus).read_bytes()], daemon=True)
    writer.start()
    assert main(["train", str(tmp_path / "pipe"), str(tmp_path / "a.vec"), *FAST]) == 0
    writer.join(timeout=60)
    assert main(["train", corpus, str(tmp_path / "b.vec"), *FAST]) == 0
    assert (tmp_path / "a.vec").read_bytes() == (tmp_path / "b.vec").read_bytes()


def mistakes(tmp_path, corpus, vectors):
    damaged = tmp_path / "damaged.npz"
    damaged.write_bytes(b"PK\x03\x04 not a zip")
    binary = tmp_path / "binary.txt"
    binary.write_bytes(bytes(range(256)) * 10)
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "rare.txt").write_text("a b c\n")
    (tmp_path / "pages.txt").write_text("a page\fnext a\n" * 9)
    (tmp_path / "old.npz").write_text("of an earlier training")
    word, old = str(tmp_path / "w.vec"), str(tmp_path / "old.npz")
    nowhere = str(tmp_path / "no" / "words.vec")
    return {
        "no text": (["train", str(tmp_path / "none.txt"), "w.vec"], "none.txt"),
        "a folder as text": (["train", str(tmp_path), word], "is a folder"),
        "vectors over the text": (["train", corpus, corpus], "as corpus and as vectors"),
        "vectors over the checkpoint": (["train", corpus, old, "--checkpoint", old], "as vectors and as checkpoint"),
        "a checkpoint that is there": (["train", corpus, word, "--checkpoint", old], "there already.*resume .*old.npz"),
        "words that text cannot hold": (["train", str(tmp_path / "pages.txt"), word], "'page.x0cnext'.*white space"),
        "no evaluation": (["train", corpus, word, "--evaluate", "none.tsv"], "none.tsv: No such file"),
        "a picture without ending": (["plot", vectors, str(tmp_path / "p")], "names no format"),
        "no vectors, and no ending": (["neighbours", "none", "a"], "none: No such file"),
        "a folder as vectors": (["neighbours", str(tmp_path), "a"], "is a folder"),
        "no folder": (["train", corpus, nowhere], "there is no folder"),
        "no folder for the checkpoint": (["train", corpus, "w.vec", "--checkpoint", nowhere], "there is no folder"),
        "unknown ending": (["train", corpus, str(tmp_path / "w.doc")], "names no format"),
        "option out of range": (["train", corpus, str(tmp_path / "w.vec"), "--dim", "-3"], "dim is -3"),
        "empty text": (["train", str(tmp_path / "empty.txt"), str(tmp_path / "w.vec")], "no tokens|empty"),
        "rare words": (["train", str(tmp_path / "rare.txt"), str(tmp_path / "w.vec")], "min_count"),
        "binary text": (["train", str(binary), str(tmp_path / "w.vec")], "UTF-8"),
        "no checkpoint": (["resume", str(damaged), corpus, str(tmp_path / "w.vec")], "damaged.npz is not a file"),
        "vectors as checkpoint": (["resume", vectors, corpus, str(tmp_path / "w.vec")], "is not a file that"),
        "unknown word": (["analogy", vectors, "man", "kinng", "woman"], "'kinng'.*spellings: king"),
        "no vectors": (["neighbours", str(tmp_path / "none.vec"), "a"], "none.vec"),
        "damaged vectors": (["info", str(damaged)], "damaged.npz"),
        "no GPU": (["train", corpus, str(tmp_path / "w.vec"), "--device", "cuda:9"], "cuda|CuPy"),
    }  # fmt: skip


MISTAKES = [
    "no text", "a folder as text", "vectors over the text", "vectors over the checkpoint", "a checkpoint that is there",
    "words that text cannot hold", "no evaluation", "no folder", "no folder for the checkpoint", "unknown ending",
    "option out of range", "empty text", "rare words", "binary text", "no checkpoint", "vectors as checkpoint",
    "unknown word", "no vectors", "no vectors, and no ending", "a folder as vectors", "a picture without ending",
    "damaged vectors", "no GPU",
]  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_sentence_and_exit_code_1(mistake, tmp_path, corpus, vectors, capsys):
    arguments, message = mistakes(tmp_path, corpus, vectors)[mistake]
    before = Path(corpus).read_bytes()
    assert main(arguments) == 1
    said = capsys.readouterr()
    assert said.out == "" and len(said.err.splitlines()) == 1 and re.search(message, said.err), said.err
    assert Path(corpus).read_bytes() == before


@pytest.mark.parametrize(
    "arguments", [[], ["fly"], ["train"], ["neighbours", "v", "--topn", "0"], ["train", "a", "b", "--loss", "x"]]
)
def test_wrong_usage_is_exit_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2 and "usage:" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["neighbours", "many.vec", "w1", "--topn", "2999"], ["neighbours", "--help"]])
def test_a_reader_that_closes_the_pipe_ends_it_quietly(arguments, tmp_path):
    WordVectors([f"w{i}" for i in range(3000)], np.random.default_rng(0).standard_normal((3000, 2))).save(
        tmp_path / "many.vec"
    )
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "metagrad.word2vec", *arguments]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, cwd=tmp_path, env=buffered())
    os.close(writer)
    assert done.stderr == b"" and done.returncode == 0


def test_a_training_goes_on_when_nobody_reads_its_reports(corpus, tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "metagrad.word2vec", "train", corpus, str(tmp_path / "w.vec"), *FAST]
    assert subprocess.run(command, stderr=writer, env=buffered()).returncode == 0 and (tmp_path / "w.vec").exists()
    os.close(writer)


@pytest.mark.skipif(os.name == "nt", reason="closes streams as a POSIX shell does")
def test_closed_and_full_streams_are_no_tracebacks(corpus, vectors, tmp_path):
    def shell(line):
        line = line.replace("word2vec", f"{shlex.quote(sys.executable)} -m metagrad.word2vec")
        return subprocess.run(line, shell=True, env=buffered(), capture_output=True, text=True)

    done = shell(f"word2vec train {corpus} {tmp_path}/w.vec {shlex.join(FAST)} 2>&-")
    assert (done.returncode, done.stdout) == (0, "") and (tmp_path / "w.vec").exists()
    done = shell(f"word2vec train - {tmp_path}/v.vec <&-")
    assert done.returncode == 1 and "standard input is closed" in done.stderr and done.stderr.count("\n") == 1
    if os.path.exists("/dev/full"):
        done = shell(f"word2vec neighbours {vectors} king >/dev/full")
        assert done.returncode == 1 and "No space left" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="sends a POSIX signal")
@pytest.mark.parametrize("workers, number, code", [(1, "SIGINT", 130), (2, "SIGINT", 130), (1, "SIGTERM", 143)])
def test_a_signal_leaves_the_checkpoint_and_nothing_else(workers, number, code, corpus, tmp_path):
    checkpoint, out, temporary = tmp_path / "the run.npz", tmp_path / "w.vec", tmp_path / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "metagrad.word2vec", "train", corpus, str(out), "--epochs", "100000"]
    command += ["--dim", "8", "--sample", "0", "--workers", str(workers), "--checkpoint", str(checkpoint)]
    env = {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, cwd=ROOT, env=env, start_new_session=True)
    deadline = time.monotonic() + 60
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        if number == "SIGINT":
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to the workers too
        else:
            process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == code and "Traceback" not in said
    assert said.splitlines()[-1] == f"stopped; go on with: metagrad-word2vec resume '{checkpoint}' {corpus} {out}"
    assert not out.exists() and Word2Vec.from_checkpoint(checkpoint).epochs == 100_000
    assert list(temporary.iterdir()) == []


def test_resume_goes_on(corpus, tmp_path, capsys):
    checkpoint = tmp_path / "run.npz"
    trainer = Word2Vec(dim=8, epochs=3, sample=0)
    whole = trainer.train(corpus, progress=False)
    trainer.train(corpus, checkpoint=checkpoint, progress=False, callbacks=[lambda t, epoch: epoch == 0])
    assert main(["resume", str(checkpoint), corpus, str(tmp_path / "w.npy")]) == 0
    assert "epoch 3/3" in capsys.readouterr().err
    np.testing.assert_array_equal(WordVectors.load(tmp_path / "w.npy").vectors, whole.vectors)
