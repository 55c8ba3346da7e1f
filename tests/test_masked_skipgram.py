"""examples/masked_skipgram.py: the recipe's golden values, its stages, and that it learns."""

import importlib.util
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

import metagrad
from metagrad import Tensor, gradcheck
from metagrad.data import DataLoader
from metagrad.word2vec import Corpus, noise_distribution

SCRIPT = Path(__file__).parents[1] / "examples" / "masked_skipgram.py"
spec = importlib.util.spec_from_file_location("masked_skipgram", SCRIPT)
recipe = importlib.util.module_from_spec(spec)
spec.loader.exec_module(recipe)

TOPICS = [["red", "green", "blue", "pink"], ["cat", "dog", "cow", "pig"]]


@pytest.fixture
def text(tmp_path):
    """Two topics, each word 100 times and more, a word too rare to stay, and <unk> in the text itself."""
    rng = np.random.default_rng(0)
    lines = [" ".join(rng.choice([*TOPICS[i % 2], "<unk>"], 6)) for i in range(400)]
    (tmp_path / "ptb.txt").write_text("\n".join([*lines, "cow", "rare red", ""]))
    return str(tmp_path / "ptb.txt")


def prepared(text, seed=0, window=3, k=4, fresh=False):
    """The corpus, and the dataset of stages 2 to 5."""
    corpus, rng = recipe.read_corpus(text, 10), np.random.default_rng(seed)
    drawn = recipe.centres_and_contexts(recipe.thin_out(corpus, 1.0, rng), window, rng)
    return corpus, recipe.MaskedDataset(*drawn, k, recipe.CachedNoise(corpus.vocabulary, seed), fresh)


def run(*arguments):
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8")


def losses_in(printed):
    return [float(loss) for loss in re.findall(r"epoch \d+\.\d  loss (\d\.\d+)", printed)]


# The loss


def test_the_published_golden_values(device):
    rows = [[1.1, -2.2, 3.3, -4.4]] * 2, [[1.0, 0, 0, 0], [0, 1, 0, 0]], [[1.0, 1, 1, 1], [1, 1, 0, 0]]
    scores, labels, masks = (Tensor(part, device=device) for part in rows)
    np.testing.assert_allclose(recipe.masked_loss(scores, labels, masks).numpy(), [0.9352, 1.8462], atol=5e-5)


def test_masked_columns_change_nothing_whatever_stands_there():
    scores, labels, masks = np.array([[1.1, -2.2]]), np.array([[1.0, 0]]), np.array([[1.0, 1]])
    plain = recipe.masked_loss(Tensor(scores), Tensor(labels), Tensor(masks)).item()
    for junk in (5.0, np.inf, np.nan):
        wide = [np.pad(a, ((0, 0), (0, 3)), constant_values=v) for a, v in ((scores, junk), (labels, 1), (masks, 0))]
        x = Tensor(wide[0], requires_grad=True)
        loss = recipe.masked_loss(x, *map(Tensor, wide[1:]))
        assert loss.item() == plain
        loss.sum().backward()
        assert not x.grad.numpy()[0, 2:].any() and x.grad.numpy()[0, :2].all()


def test_a_row_that_is_all_masked_has_loss_and_gradient_0():
    x = Tensor([[1.1, -2.2]], requires_grad=True)
    loss = recipe.masked_loss(x, Tensor([[1.0, 0]]), Tensor([[0.0, 0]]))
    loss.sum().backward()
    assert loss.item() == 0 and not x.grad.numpy().any()


def test_gradients_of_a_padded_batch_are_those_of_differences(text):
    corpus, data = prepared(text, k=2)
    batch = [Tensor(array) for array in data.__getitems__(np.arange(6))]

    def loss(centres, contexts):
        model = recipe.MaskedSkipGram(len(corpus.vocabulary), 3)
        model.centres.weight, model.contexts.weight = centres, contexts
        return model(*batch)

    tables = np.random.default_rng(0).standard_normal((2, len(corpus.vocabulary), 3))
    assert gradcheck(loss, *tables)


# The stages


def test_unk_is_in_the_vocabulary_once_and_nowhere_in_the_training_data(text):
    corpus, data = prepared(text)
    assert sorted(corpus.vocabulary.tokens) == sorted(["<unk>", *TOPICS[0], *TOPICS[1]])
    unk = corpus.vocabulary["<unk>"]
    assert unk not in data.centres and unk not in data.contexts and unk not in data.negatives


def test_frequent_words_are_thinned_out_by_the_published_rule():
    """Of the words that are left without <unk> one of share f stays with probability √(t/f), here t = 0.01."""
    rng = np.random.default_rng(0)
    words = rng.permutation(["the"] * 95_000 + ["some"] * 4_990 + ["join"] * 10)
    corpus = Corpus.build([["<unk>"] * 50_000, words.tolist()], unknown="<unk>")
    left = recipe.thin_out(corpus, 0.01, rng).occurrences()
    assert left[corpus.vocabulary["join"]] == 10 and left[corpus.vocabulary["<unk>"]] == 0
    assert left[corpus.vocabulary["the"]] == pytest.approx(95_000 * (0.01 / 0.95) ** 0.5, rel=0.05)
    assert left[corpus.vocabulary["some"]] == pytest.approx(4_990 * (0.01 / 0.0499) ** 0.5, rel=0.05)


def test_radii_are_drawn_uniformly_and_a_word_alone_is_no_centre(text):
    long = Corpus.build([["a", "b"] * 5_000, ["a"]])
    centres, contexts = recipe.centres_and_contexts(long, 5, np.random.default_rng(0))
    assert len(centres) == 10_000 and contexts.shape == (10_000, 10)
    n = (contexts[5:-5] >= 0).sum(axis=1)  # away from the ends all 2 r contexts are there
    np.testing.assert_allclose(np.bincount(n)[2::2] / len(n), 0.2, atol=0.02)


def test_k_noise_words_for_each_context_none_of_them_a_context_of_the_centre():
    contexts = np.array([[1, 2, -1, -1], [3, -1, -1, 3], [-1, 0, -1, -1]])
    corpus = Corpus.build([["a"] * 9, ["b"] * 5, ["c"] * 4, ["d"] * 3, ["e"] * 2, ["<unk>"] * 50])
    noise = recipe.CachedNoise(corpus.vocabulary, seed=0, size=7)
    contexts = np.array([corpus.vocabulary[t] for t in "abcde"] + [-1])[contexts]
    negatives = recipe.noise_words(contexts, 400, noise)
    assert negatives.shape == (5, 400)
    p = noise_distribution(corpus.vocabulary.counts, 0.75, exclude=[corpus.vocabulary["<unk>"]])
    for row, centre in zip(negatives, [0, 0, 1, 1, 2]):
        p_here = p.copy()
        p_here[contexts[centre][contexts[centre] >= 0]] = 0  # so what is a context is never drawn
        drawn = np.bincount(row, minlength=len(p)) / len(row)
        assert not drawn[p_here == 0].any()
        np.testing.assert_allclose(drawn, p_here / p_here.sum(), atol=0.1)


def test_the_cached_generator_goes_on_where_it_was_and_draws_10_000_at_a_time(text):
    vocabulary = recipe.read_corpus(text, 10).vocabulary
    pieces, whole = recipe.CachedNoise(vocabulary, 3, size=10), recipe.CachedNoise(vocabulary, 3, size=10)
    drawn = np.concatenate([pieces.draw(n).ravel() for n in (3, (4, 3), 0, 1, 30)])
    np.testing.assert_array_equal(drawn, whole.draw(46))
    noise = recipe.CachedNoise(vocabulary, 3)
    noise.draw(1)
    assert len(noise.cache) == 9_999


def test_a_minibatch_worked_out_on_paper():
    contexts = np.array([[7, -1, 8], [-1, -1, 9]])
    batch = recipe.minibatch(np.array([5, 6]), contexts, negatives=np.array([[1, 2], [3, 4], [1, 4]]))
    assert batch.centres.tolist() == [[5], [6]]
    assert batch.contexts_negatives.tolist() == [[7, 8, 1, 2, 3, 4], [9, 1, 4, 0, 0, 0]]
    assert batch.masks.tolist() == [[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]]
    assert batch.labels.tolist() == [[1, 1, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize("fresh", [False, True])
def test_batches_hold_each_centre_with_its_own_words_and_are_as_wide_as_their_longest_row(text, fresh):
    _, data = prepared(text, fresh=fresh)
    order, widths = np.random.default_rng(0).permutation(len(data)), set()
    for indices in np.array_split(order, len(data) // 8):
        batch = data.__getitems__(indices)
        widths.add(batch.masks.shape[1])
        assert batch.masks.shape[1] == batch.masks.sum(axis=1).max()
        for i, index in enumerate(indices):
            row = batch.contexts_negatives[i]
            context, noise = row[batch.labels[i] == 1], row[(batch.masks[i] == 1) & (batch.labels[i] == 0)]
            assert batch.centres[i] == data.centres[index] and len(noise) == 4 * len(context)
            assert context.tolist() == [c for c in data.contexts[index] if c >= 0]
            assert not set(context) & set(noise)
    assert len(widths) > 1


def test_stored_noise_comes_back_in_every_epoch_and_fresh_noise_does_not(text):
    for fresh in (False, True):
        _, data = prepared(text, fresh=fresh)
        first, second = (next(iter(DataLoader(data, 64))).contexts_negatives for _ in range(2))
        assert (first == second).all() == (not fresh)


def test_resampling_draws_other_contexts_in_each_epoch_and_stores_less(text, capsys):
    corpus = recipe.read_corpus(text, 10)
    size = {}
    for resample in (False, True):
        options = Namespace(seed=1, t=1.0, window=3, negatives=4, epochs=2, resample=resample)
        one, two = recipe.epochs_of(corpus, recipe.CachedNoise(corpus.vocabulary, 1), options)
        assert np.array_equal(one.contexts, two.contexts) == (not resample)
        size[resample] = one.nbytes
    assert size[True] < size[False]


# The whole


def test_training_gives_the_same_vectors_on_every_device(text, device):
    corpus, data = prepared(text)
    tables = []
    for place in ("cpu", device):
        metagrad.manual_seed(0)
        model = recipe.MaskedSkipGram(len(corpus.vocabulary), 8).to(place)
        recipe.train(model, [data], Namespace(lr=0.02, batch_size=256, seed=0, picture=None))
        assert model.centres.weight.dtype == np.float32
        tables.append(model.centres.weight.numpy())
    np.testing.assert_allclose(tables[1], tables[0], atol=1e-5)


@pytest.mark.parametrize("more", [[], ["--resample"]])
def test_the_script_learns_repeats_itself_and_finds_the_neighbours(text, tmp_path, more):
    small = {"dim": 16, "t": 1, "epochs": 8, "lr": 0.02, "negatives": 2, "window": 2, "words": "red", "topn": 3}
    small = [f"--{name}={value}" for name, value in small.items()]
    runs = [run("--corpus", text, "--batch-size=128", *small, *more, "--output", tmp_path / f"{i}.vec") for i in (0, 1)]
    assert [done.returncode for done in runs] == [0, 0], runs[0].stderr[-500:]
    losses = losses_in(runs[0].stdout)
    assert len(losses) == 8 * 5 and 0.6 < losses[0] < 0.72 and losses[-1] < 0.55
    assert re.search(r"[\d,]+ tokens/s on", runs[0].stdout)
    neighbours = re.findall(r"[a-z]+(?= \d\.\d\d)", runs[0].stdout.splitlines()[-1])
    assert sorted(neighbours) == ["blue", "green", "pink"]
    assert (tmp_path / "0.vec").read_bytes() == (tmp_path / "1.vec").read_bytes()


def test_on_the_embedded_text_the_loss_falls():
    """The default run, shortened: below 0.5 after one epoch, where a guess has ln 2 = 0.69."""
    done = run("--epochs", 1, "--dim", 32, "--min-freq", 50, "--lr", 0.005)
    losses = losses_in(done.stdout)
    assert len(losses) == 5 and 0.6 < losses[0] < 0.72 and losses[-1] < 0.5, done.stderr[-500:]


def test_the_curve_is_drawn_into_a_picture(text, tmp_path):
    pytest.importorskip("matplotlib")
    done = run("--corpus", text, "--epochs", 1, "--dim", 4, "--t", 1, "--picture", tmp_path / "loss.png")
    assert done.returncode == 0 and (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("arguments, message", [
    (["--corpus", "no such file"], "no such file"), (["--min-freq", "10000"], "lower min_count"),
    (["--t", "1e-12"], "larger --t"), (["--negatives", "0"], "--negatives is 0"),
    (["--words", "dgo"], "spellings: dog"), (["--window", "0"], "window"), (["--epochs", "0"], "--epochs is 0"),
    (["--output", "x.what"], "names no format"), (["--output", "no such folder/x.vec"], "no such folder"),
    (["--picture", "no such folder/x.png"], "no such folder"),
])  # fmt: skip
def test_a_wrong_argument_is_answered_with_one_sentence(arguments, message, text):
    done = run(*(["--corpus", text] if "--corpus" not in arguments else []), *arguments)
    assert done.returncode in (1, 2) and message in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
