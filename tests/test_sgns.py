"""The example examples/sgns.py: the model's numbers, its traps, and that it learns and repeats."""

import importlib.util
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

import metagrad
from metagrad import Rows, Tensor, gradcheck
from metagrad.data import DataLoader
from metagrad.optim import SGD
from metagrad.word2vec import NoiseSampler, WordVectors

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "examples" / "sgns.py"
spec = importlib.util.spec_from_file_location("sgns", SCRIPT)
sgns = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sgns)


@pytest.fixture
def text(tmp_path):
    """Two topics whose words stand with their own kind only, and one-word lines that have no pair."""
    rng = np.random.default_rng(0)
    topics = [["red", "green", "blue", "pink"], ["cat", "dog", "cow", "pig"]]
    lines = [" ".join(rng.choice(topics[i % 2], 6)) for i in range(200)]
    (tmp_path / "text.txt").write_text("\n".join([*lines, "", "alone", "alone", "alone"]) + "\n")
    return tmp_path / "text.txt"


def dataset_of(path, window=2, n_negatives=5, seed=0):
    corpus = sgns.load_corpus(str(path), min_freq=1)
    noise = NoiseSampler(sgns.get_unigram_distribution(corpus), seed=seed)
    return corpus, noise, sgns.SGNSDataset(corpus, window, n_negatives, noise)


def batch_of(dataset, size=64):
    return dataset.collate_fn(dataset.__getitems__(np.arange(size)))


def dense(grad):
    return grad.dense() if isinstance(grad, Rows) else grad.data


@pytest.mark.parametrize("window, K", [(1, 1), (2, 5), (4, 10)])
def test_zero_tables_give_one_plus_k_times_log_2(text, window, K, device):
    """So each context counts its own K noise words once, whatever the window and the padding."""
    corpus, _, dataset = dataset_of(text, window, K)
    model = sgns.SGNSModel(len(corpus.vocabulary), 8, padding_idx=0).to(device)
    with metagrad.no_grad():
        for table in model.parameters():
            table.fill_(0.0)
    loss = model(*(Tensor(array, device=device) for array in batch_of(dataset)))
    assert abs(loss.item() - (1 + K) * np.log(2)) < 1e-6 * (1 + K)
    assert loss.dtype == np.float32


def test_the_usual_start_gives_almost_that_loss_and_small_scores(text):
    corpus, _, dataset = dataset_of(text)
    model = sgns.SGNSModel(len(corpus.vocabulary), 8, padding_idx=0)
    loss = model(*map(Tensor, batch_of(dataset)))
    assert abs(loss.item() - 6 * np.log(2)) < 1e-3
    assert abs(model.w_embeddings.weight.numpy()).max() <= 0.5 / 8 and not model.c_embeddings.weight.numpy().any()


def test_gradients_are_those_worked_out_on_paper():
    """One word, one context, K noise words: ∂/∂c = (σ(c·w) − 1) w, ∂/∂n = σ(n·w) w, ∂/∂w = the sum over both."""
    model = sgns.SGNSModel(6, 4, padding_idx=0).to(dtype=np.float64)
    rng = np.random.default_rng(0)
    W, C = rng.standard_normal((6, 4)), rng.standard_normal((6, 4))
    model.load_state_dict({"w_embeddings.weight": W, "c_embeddings.weight": C})
    noise = np.array([3, 4, 4])
    model(Tensor([1]), Tensor([[2]]), Tensor([[True]]), Tensor(noise[None, None])).backward()

    def sigma(x):
        return 1 / (1 + np.exp(-x))

    w = W[1]
    expected_c, expected_w = np.zeros((6, 4)), np.zeros((6, 4))
    expected_c[2] = (sigma(C[2] @ w) - 1) * w
    for n in noise:
        expected_c[n] += sigma(C[n] @ w) * w
    expected_w[1] = (sigma(C[2] @ w) - 1) * C[2] + sum(sigma(C[n] @ w) * C[n] for n in noise)
    np.testing.assert_allclose(dense(model.w_embeddings.weight.grad), expected_w, rtol=1e-12)
    np.testing.assert_allclose(dense(model.c_embeddings.weight.grad), expected_c, rtol=1e-12)


def test_gradients_of_a_padded_batch_are_those_of_differences(text):
    corpus, _, dataset = dataset_of(text)
    batch = [Tensor(array) for array in batch_of(dataset, 9)]
    V = len(corpus.vocabulary)
    rng = np.random.default_rng(0)

    def loss(W, C):
        model = sgns.SGNSModel(V, 3, padding_idx=0)
        model.w_embeddings.weight, model.c_embeddings.weight = W, C
        return model(*batch)

    C = rng.standard_normal((V, 3))
    C[0] = 0  # the padding row
    assert gradcheck(loss, rng.standard_normal((V, 3)), C)


def test_the_noise_distribution_is_bit_identical_after_100_batches(text):
    _, noise, dataset = dataset_of(text)
    before = noise.distribution.tobytes()
    for _ in range(100):
        batch_of(dataset)
    assert noise.distribution.tobytes() == before


def test_noise_is_never_a_true_context_and_never_a_reserved_token(text):
    corpus, _, dataset = dataset_of(text)
    _, contexts, mask, negatives = batch_of(dataset, len(dataset))
    true = np.where(mask, contexts, -1)[:, None, None, :]
    assert not (negatives[..., None] == true).any()
    assert not np.isin(negatives, corpus.vocabulary.specials).any()


def test_a_word_alone_in_its_sentence_gives_no_nan_and_padding_learns_nothing(text):
    corpus, _, dataset = dataset_of(text)
    model = sgns.SGNSModel(len(corpus.vocabulary), 8, padding_idx=corpus.vocabulary["<pad>"])
    optimizer = SGD(model.parameters(), lr=1.0)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(*map(Tensor, batch_of(dataset, len(dataset))))
        loss.backward()
        optimizer.step()
    assert np.isfinite(loss.item())
    assert not model.c_embeddings.weight.numpy()[0].any()


def test_float32_stays_float32_and_the_loss_of_a_repeated_batch_falls(text):
    corpus, _, dataset = dataset_of(text)
    model = sgns.SGNSModel(len(corpus.vocabulary), 8, padding_idx=0)
    optimizer = SGD(model.parameters(), lr=np.float64(5.0))
    batch, losses = [Tensor(array) for array in batch_of(dataset)], []
    for _ in range(50):
        optimizer.zero_grad()
        loss = model(*batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert {p.dtype for p in model.parameters()} | {p.grad.dtype for p in model.parameters()} == {np.dtype("float32")}
    assert losses[-1] < losses[0] - 0.5


@pytest.mark.parametrize("optimizer", ["adagrad", "sgd"])
def test_words_of_one_topic_become_neighbours(text, optimizer, capsys):
    metagrad.manual_seed(0)
    corpus, _, dataset = dataset_of(text)
    model = sgns.SGNSModel(len(corpus.vocabulary), 8, padding_idx=0)
    loader = DataLoader(dataset, 64, shuffle=True, collate_fn=dataset.collate_fn, generator=0)
    lr = {"adagrad": 0.1, "sgd": 3.0}[optimizer]
    sgns.train(model, loader, Namespace(optimizer=optimizer, lr=lr, epochs=8), metagrad.cuda.get_device("cpu"))
    losses = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()]
    assert losses[-1] < losses[0] - 0.3
    vectors = WordVectors(corpus.vocabulary.tokens, model.w_embeddings.weight)
    words = ["red", "green", "blue", "pink", "cat", "dog", "cow", "pig"]
    for i, word in enumerate(words):
        same = [vectors.similarity(word, w) for w in words[i // 4 * 4 : i // 4 * 4 + 4] if w != word]
        other = [vectors.similarity(word, w) for w in words if w not in words[i // 4 * 4 : i // 4 * 4 + 4]]
        assert min(same) > max(other)


def run(*arguments, **environment):
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", cwd=ROOT, env=env)


def test_the_script_repeats_itself_in_another_process_and_learns(text, tmp_path):
    small = ["--corpus", text, "--epochs", 2, "--batch-size", 64, "--dim", 8]
    runs = [
        run(*small, "--output", tmp_path / f"{i}.vec", PYTHONHASHSEED=str(i), LC_ALL="C", PYTHONUTF8="1")
        for i in (0, 1)
    ]
    assert [done.returncode for done in runs] == [0, 0], runs[0].stderr[-500:]
    assert (tmp_path / "0.vec").read_bytes() == (tmp_path / "1.vec").read_bytes()
    lines = [line for line in runs[0].stdout.splitlines() if "loss" in line]
    assert len(lines) == 2 and float(lines[1].split()[-1]) < float(lines[0].split()[-1]) < 11 * np.log(2)


@pytest.mark.parametrize("arguments, message", [
    (["--corpus", "no such file"], "no such file"), (["--negatives", "0"], "n_negatives is 0"),
    (["--min-freq", "10000"], "min_count"), (["--words", "dgo"], "spellings: dog"), (["--window", "0"], "window"),
    (["--output", "no such folder/x.vec"], "no such folder"),
])  # fmt: skip
def test_a_wrong_argument_is_answered_with_one_sentence(arguments, message, text):
    done = run(
        *(["--corpus", text] if "--corpus" not in arguments else []),
        *(["--output", os.devnull] if "--output" not in arguments else []),
        *arguments,
    )
    assert done.returncode in (1, 2) and message in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
