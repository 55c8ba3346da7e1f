"""Training: it learns, repeats bit for bit, resumes as if it had not been stopped, and says what goes wrong."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import metagrad
from metagrad.word2vec import Corpus
from metagrad.word2vec.models import MODELS
from metagrad.word2vec.trainer import Word2Vec
from metagrad.word2vec.training import Schedule

ROOT = Path(__file__).parents[1]
TOPICS = [["red", "green", "blue", "pink"], ["cat", "dog", "cow", "pig"], ["one", "two", "three", "four"]]


def sentences(n=600, seed=0):
    rng = np.random.default_rng(seed)
    return [list(rng.choice(TOPICS[i % 3], 8)) for i in range(n)]


def small(**options):
    return Word2Vec(**{"dim": 16, "sample": 0, "epochs": 6, "lr": 0.05, **options})


def train(trainer, source=None, **options):
    return trainer.train(sentences() if source is None else source, progress=False, **options)


def learned(vectors):
    """Whether every word is nearer to all words of its topic than to any other."""
    for topic in TOPICS:
        for word in topic:
            same = min(vectors.similarity(word, w) for w in topic if w != word)
            other = max(vectors.similarity(word, w) for t in TOPICS if t is not topic for w in t)
            if same <= other:
                return False
    return True


@pytest.mark.parametrize("workers", [1, 2])
def test_words_of_one_topic_become_neighbours(workers):
    trainer = small(workers=workers)
    assert learned(train(trainer))
    assert len(trainer.losses) == 6 and trainer.losses[-1] < trainer.losses[0] - 0.2
    assert trainer.losses[0] < 6 * np.log(2) and trainer.words_per_second > 0
    assert trainer.vectors.vectors.dtype == np.float32


@pytest.mark.parametrize("model, loss", [kind for kind in MODELS if kind != ("skipgram", "negatives")])
def test_every_model_learns(model, loss, tmp_path):
    """And goes on from a checkpoint, and with new words."""
    workers = 2 if (model, loss) == ("cbow", "hierarchical") else 1
    trainer = small(model=model, loss=loss, workers=workers, lr=None if model == "cbow" else 0.05, epochs=10)
    assert learned(train(trainer, checkpoint=tmp_path / "run.npz"))
    assert trainer.losses[-1] < trainer.losses[0]
    again = Word2Vec.from_checkpoint(tmp_path / "run.npz")
    np.testing.assert_array_equal(again.vectors.vectors, trainer.vectors.vectors)
    rng = np.random.default_rng(1)
    again.train_more([list(rng.choice(["white", *TOPICS[0]], 8)) for _ in range(200)] + sentences(), progress=False)
    assert again.vectors.similarity("white", "red") > again.vectors.similarity("white", "cow")


def test_every_device_learns_the_same(device):
    """The sums of a GPU come in another order, so digits may differ late."""
    host, there = train(small(epochs=1)), train(small(epochs=1, device=device))
    np.testing.assert_allclose(there.vectors, host.vectors, rtol=1e-3, atol=1e-5)


def test_the_first_loss_is_that_of_zero_scores():
    trainer = small(epochs=1, lr=1e-9)
    train(trainer)
    counted = 1 + 5 * 11 / 12  # the true context and K draws, less those that hit it
    assert trainer.losses[0] == pytest.approx(counted * np.log(2), rel=0.005)


def run_script(code, **environment):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT)]), **environment}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True).stdout


def test_a_seed_gives_the_same_vectors_in_any_process():
    code = (
        "from tests.test_trainer import *; import hashlib;"
        "np.random.seed(3); before = np.random.get_state()[1].copy();"
        "print(hashlib.sha256(train(small(epochs=2)).vectors.tobytes()).hexdigest());"
        "assert (np.random.get_state()[1] == before).all()"
    )
    assert run_script(code, PYTHONHASHSEED="0") == run_script(code, PYTHONHASHSEED="1")
    first, second = train(small(epochs=2)), train(small(epochs=2, seed=2))
    assert first.vectors.tobytes() != second.vectors.tobytes()


def test_resuming_from_any_checkpoint_gives_the_vectors_of_a_run_that_was_not_stopped(tmp_path):
    whole = train(small())
    saved = []

    class Stop(Exception):
        pass

    def copy_checkpoint(trainer, epoch):
        saved.append(tmp_path / f"{epoch}.npz")
        (tmp_path / "run.npz").rename(saved[-1])
        if epoch == 3:
            raise Stop

    with pytest.raises(Stop):
        train(small(), checkpoint=tmp_path / "run.npz", callbacks=[copy_checkpoint])
    for path in saved[:3]:
        resumed = Word2Vec.resume(path, sentences(), progress=False)
        assert resumed.vectors.tobytes() == whole.vectors.tobytes()


def test_resuming_within_an_epoch_gives_the_same_vectors(tmp_path):
    """minutes=0 writes a checkpoint at every report; the process is killed at a moment of the clock's choosing."""
    code = (
        "import sys; from tests.test_trainer import *; import metagrad.word2vec.trainer as t;"
        "clock = iter(range(10**9)); t.time.monotonic = lambda: float(next(clock));"
        f"train(small(epochs=40), checkpoint={str(tmp_path / 'run.npz')!r}, minutes=0)"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}  # what a killed process leaves goes, too
    process = subprocess.Popen([sys.executable, "-c", code], env=env)
    path = tmp_path / "run.npz"
    for _ in range(400):
        time.sleep(0.05)
        if path.exists() and metagrad.load(path)["state"]["steps"]:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    state = metagrad.load(path)["state"]
    assert state["epoch"] < 40
    resumed = Word2Vec.resume(path, sentences(), progress=False)
    assert resumed.vectors.tobytes() == train(small(epochs=40)).vectors.tobytes()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_step_that_is_too_large_stops_at_once_and_keeps_the_last_good_checkpoint(workers, tmp_path):
    path = tmp_path / "run.npz"
    good = small(epochs=1)
    train(good, checkpoint=path)
    before = path.read_bytes()
    message = r"step \d+.*learning rate.*largest weight"
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match=message):
        train(small(lr=100, workers=workers), checkpoint=path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("workers", [1, 2])
def test_the_rate_falls_with_the_words_seen_from_lr_to_min_lr(workers):
    rates = []
    trainer = small(epochs=3, lr=0.06, workers=workers)
    train(trainer, callbacks=[lambda t, epoch: rates.append(t._rate())])
    np.testing.assert_allclose(rates[:2], [0.04, 0.02], rtol=0.02)
    assert rates[2] < 0.002
    trainer = small(epochs=1, lr=0.1, min_lr=0.05)
    train(trainer)
    assert trainer._rate() == 0.05


def test_steps_are_as_long_as_frequent_words_allow_and_grow_as_the_rate_falls():
    kept = np.array([10.0, 30, 20, 40])  # two words of the text are the same in 0.3 of all cases

    def sizes(words, lr=0.01, longest=(1000, 64), **more):
        return Schedule.of(lr, lr / 10, 5, kept, longest=longest, **more).sizes(words)

    assert Schedule.of(0.01, 0.001, 5, kept, longest=(9, 9)).total == 500
    for words, rate in ((0, 0.01), (250, 0.005), (499, 0.001)):
        step, stretch = sizes(words, predictions=6, draws=5)
        assert step == int(0.3 / 0.3 / 6 / rate) and stretch == min(int(1.5 / 5 / 6 / rate), 64)
    assert sizes(499, longest=(20, 10)) == (20, 10)
    assert sizes(0, lr=100, draws=5) == (1, 1)
    assert sizes(0, workers=4) == (sizes(0)[0] // 4, 64)
    assert sizes(499, longest=(20, 10), workers=4) == (5, 10)  # together as many as one would take
    even = np.ones(1_000_000)
    assert Schedule.of(0.1, 0.1, 5, even, longest=(5000, 64), tree=True).sizes(0)[0] == 360


def test_a_checkpoint_goes_on_with_other_options_and_says_which_it_does_not_know(tmp_path):
    path = tmp_path / "run.npz"
    train(small(epochs=3), checkpoint=path, callbacks=[lambda t, epoch: epoch == 0])
    trainer = Word2Vec.from_checkpoint(path, lr=0.01, workers=2)
    trainer.go_on(sentences(), progress=False)
    assert len(trainer.losses) == 3 and trainer.lr == 0.01
    with pytest.raises(ValueError, match="run.npz: 'momentum' is no option"):
        Word2Vec.from_checkpoint(path, momentum=0.9)
    saved = metagrad.load(path)
    metagrad.save({**saved, "options": {**saved["options"], "device": "cuda:9"}}, path)
    assert Word2Vec.from_checkpoint(path).losses, "what it holds can be looked at without its GPU"
    with pytest.raises((ValueError, RuntimeError, ImportError)):
        Word2Vec.resume(path, sentences(), progress=False)


@pytest.mark.parametrize("text", [[["alone"]] * 20, [["same"] * 8] * 20])
def test_a_text_in_which_nothing_has_a_context_is_refused(text):
    """Or in which thinning out leaves next to nothing."""
    with pytest.raises(ValueError, match="nothing can be learned"):
        train(small(sample=1e-9), text)


@pytest.mark.parametrize(
    "option, value",
    [("sample", -1), ("sample", float("nan")), ("min_count", -1), ("seed", -1), ("max_vocab", 0), ("min_lr", 1.0),
     ("ns_exponent", float("inf")), ("dim", 0), ("negatives", 0), ("lr", 0), ("loss", "hinge")],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused_before_anything_is_read(option, value):
    with pytest.raises(ValueError, match=f"^{option} is "):
        Word2Vec(**{option: value})


def test_more_training_is_scheduled_by_its_own_text():
    """Not by the counts of both: else the rate would stop half way."""
    trainer, rates = small(epochs=2), []
    train(trainer)
    trainer.train_more(sentences(60), progress=False, callbacks=[lambda t, epoch: rates.append(t._rate())])
    np.testing.assert_allclose(rates[0], 0.025, rtol=0.05)
    assert rates[1] < 0.002
    with pytest.raises(TypeError, match="the text itself"):
        trainer.train_more(Corpus.build(sentences(9)))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_corpus_in_memory_trains_like_one_in_files(workers, tmp_path):
    if workers == 1:
        a = train(small(), Corpus.build(sentences(), min_count=5))
        b = train(small(), Corpus.build(sentences(), min_count=5, folder=tmp_path))
        np.testing.assert_array_equal(a.vectors, b.vectors)
        np.testing.assert_array_equal(a.vectors, train(small()).vectors)
    else:
        assert learned(train(small(workers=2), Corpus.build(sentences(), min_count=5)))
        assert learned(train(small(workers=2), Corpus.build(sentences(), min_count=5, folder=tmp_path)))


def test_a_callback_sees_each_epoch_and_may_end_the_training():
    seen = []

    def callback(trainer, epoch):
        seen.append((epoch, len(trainer.losses), len(trainer.vectors)))
        return epoch == 1

    trainer = small()
    train(trainer, callbacks=[callback])
    assert seen == [(0, 1, 12), (1, 2, 12)] and len(trainer.losses) == 2


def test_training_goes_on_with_another_text_and_its_new_words():
    trainer = small()
    before = train(trainer)
    more = [["red", "violet", "green", "violet", "blue"]] * 100
    after = trainer.train_more(more, progress=False)
    assert after.tokens[: len(before.tokens)] == before.tokens and after.tokens[-1] == "violet"
    assert after.counts[after.index("violet")] == 200
    assert after.counts[after.index("red")] == before.counts[before.index("red")] + 100
    model, index = trainer._model, after.index
    scores = model.input.weight.numpy()[index("violet")] @ model.output.weight.numpy().T
    assert scores[index("red")] > scores[index("cat")]


def test_training_again_begins_anew():
    trainer = small(epochs=1)
    assert train(trainer).vectors.tobytes() == train(trainer).vectors.tobytes()
    assert len(trainer.losses) == 1


def test_a_corpus_may_be_built_once_and_trained_on_often():
    corpus = Corpus.build(sentences(), min_count=1)
    first, second = (train(small(epochs=1), corpus) for _ in range(2))
    assert first.vectors.tobytes() == second.vectors.tobytes()


@pytest.mark.parametrize("options, message", [
    ({"negatives": 0}, "negatives is 0"), ({"dim": 0}, "dim is 0"), ({"lr": 0}, "lr is 0"),
    ({"epochs": -1}, "epochs is -1"),
    ({"workers": 2, "device": "cuda:0"}, "workers"), ({"lr": float("nan")}, "lr is nan"),
])  # fmt: skip
def test_options_that_make_no_sense_are_named(options, message):
    with pytest.raises((ValueError, RuntimeError), match=message):
        Word2Vec(**options)


def test_a_checkpoint_of_another_text_and_a_file_of_another_kind_are_refused(tmp_path):
    train(small(epochs=1), checkpoint=tmp_path / "run.npz")
    with pytest.raises(ValueError, match="same text"):
        Word2Vec.resume(tmp_path / "run.npz", sentences(5), progress=False)
    metagrad.save({"a": 1}, tmp_path / "other.npz")
    with pytest.raises(ValueError, match="no checkpoint"):
        Word2Vec.resume(tmp_path / "other.npz", sentences(), progress=False)


@pytest.mark.parametrize("source, error", [
    ([["a", "b"]], ValueError), ((s for s in sentences()), TypeError), (["hello world"], TypeError),
    ({"a": 1}, TypeError),
])  # fmt: skip
def test_what_is_no_text_is_refused_before_training(source, error):
    with pytest.raises(error):
        train(small(), source)
