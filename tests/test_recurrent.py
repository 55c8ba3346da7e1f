"""Recurrent layers: against cells in a plain loop, and against PyTorch where it is installed."""

import numpy as np
import pytest

import metagrad
from metagrad import Tensor, gradcheck, nn

LAYERS = {nn.RNN: nn.RNNCell, nn.GRU: nn.GRUCell, nn.LSTM: nn.LSTMCell}
rng = np.random.default_rng(0)


def sequences(T=5, B=3, inputs=2, dtype=np.float64):
    return rng.standard_normal((T, B, inputs)).astype(dtype)


def h_of(state):
    return state[0] if isinstance(state, tuple) else state


def close(x, y, tol=1e-12):
    x, y = (v.numpy() if isinstance(v, Tensor) else np.asarray(v) for v in (x, y))
    np.testing.assert_allclose(x, y, rtol=tol, atol=tol)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_is_its_cell_in_a_loop(layer):
    x = sequences()
    model = layer(2, 4, dtype=np.float64)
    cell, state, states = model.cells[0], None, []
    assert isinstance(cell, LAYERS[layer])
    for t in range(len(x)):
        state = cell(x[t], state)
        states.append(h_of(state).numpy())
    out, last = model(x)
    close(out, states)
    close(h_of(last)[0], h_of(state))


@pytest.mark.parametrize("layer", LAYERS)
def test_bidirectional_layers_with_lengths_are_each_sequence_alone(layer):
    x, lengths = sequences(), [5, 2, 3]
    model = layer(2, 3, layers=2, bidirectional=True, dtype=np.float64)
    out, last = model(x, lengths=lengths)
    assert out.shape == (5, 3, 6) and h_of(last).shape == (4, 3, 3)
    for b, n in enumerate(lengths):
        alone, final = model(x[:n, b])  # one sequence, without a batch
        close(out[:n, b], alone)
        close(out[n:, b], np.zeros((5 - n, 6)))
        close(h_of(last)[:, b], h_of(final))


def test_what_is_padded_changes_nothing():
    x = sequences()
    model = nn.GRU(2, 3, bidirectional=True, dtype=np.float64)
    other = x.copy()
    other[2:, 1] = 1e3
    close(model(x, lengths=[5, 2, 5])[0], model(other, lengths=[5, 2, 5])[0])


@pytest.mark.parametrize("layer", LAYERS)
def test_derivatives_through_layers_directions_and_lengths(layer):
    model = layer(2, 2, layers=2, bidirectional=True, dtype=np.float64)

    def out(x, *values):
        for p, v in zip(model.parameters(), values):
            p.data, p.node = v.data, v.node
        y, last = model(x, lengths=[3, 1])
        return y.sum() + (h_of(last) * h_of(last)).sum()

    assert gradcheck(out, sequences(T=3, B=2), *[p.numpy().copy() for p in model.parameters()])


@pytest.mark.parametrize("layer", LAYERS)
def test_it_learns_what_came_first(layer):
    """The sign of a sequence's first number, told after four more; every parameter takes part, the biases too."""
    metagrad.manual_seed(1)
    model, read = layer(1, 8, bias=True), nn.Linear(8, 1)
    parameters = [*model.parameters(), *read.parameters()]
    start = [p.numpy().copy() for p in parameters]
    optimizer = metagrad.optim.Adam(parameters, lr=0.02)
    data = np.random.default_rng(3)
    for _ in range(200):
        x = data.standard_normal((5, 32, 1)).astype(np.float32)
        optimizer.zero_grad()
        loss = metagrad.functional.binary_cross_entropy_with_logits(read(model(x)[0][-1])[:, 0], (x[0, :, 0] > 0) * 1.0)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.35
    assert all(p.dtype == np.float32 and abs(p.numpy() - s).max() > 0.01 for p, s in zip(parameters, start))


def test_batch_first_and_a_state_handed_on():
    x = sequences()
    model = nn.LSTM(2, 3, layers=2, dtype=np.float64)
    whole, last = model(x)
    first, state = model(x[:2])
    second, end = model(x[2:], state)
    close(np.concatenate([first.numpy(), second.numpy()]), whole)
    close(end[1], last[1])
    model.batch_first = True
    close(model(x.swapaxes(0, 1))[0], whole.numpy().swapaxes(0, 1))


def test_cells_without_a_batch_and_without_bias():
    for cell in LAYERS.values():
        c = cell(2, 2, bias=False)
        assert len(list(c.parameters())) == 2
        assert h_of(c(np.ones(2, np.float32))).shape == (2,)
        close(h_of(c(np.ones(2, np.float32))), h_of(c(np.ones((1, 2), np.float32)))[0], 1e-6)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nn.GRU(2, 3)(np.ones((4, 2, 5))), "linear: values"),
        (lambda: nn.GRU(2, 3)(np.ones((4, 2, 2)), np.ones((1, 3, 3))), r"gru: .*\(4, 2, 2\) and \(3, 3\)"),
        (lambda: nn.GRU(2, 3)(np.ones((0, 2, 2))), "at least one step"),
        (lambda: nn.GRU(2, 3)(np.ones((4, 2, 2)), lengths=[5, 1]), "from 0 to 4"),
        (lambda: nn.GRU(2, 3)(np.ones((4, 2, 2)), lengths=[1]), "each of 2 sequences"),
        (lambda: nn.RNN(2, 3, nonlinearity="sin")(np.ones((4, 2, 2))), "'tanh' or 'relu'"),
    ],
)
def test_misuse_is_answered(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_values_and_gradients_are_pytorchs(name, bidirectional):
    torch = pytest.importorskip("torch")
    theirs = getattr(torch.nn, name)(2, 3, num_layers=2, bidirectional=bidirectional).double()
    ours = getattr(nn, name)(2, 3, layers=2, bidirectional=bidirectional, dtype=np.float64)
    with metagrad.no_grad():
        for p, q in zip(ours.parameters(), theirs.parameters()):
            p.copy_(Tensor(q.detach().numpy()))
    x = sequences()
    lengths = [5, 4, 2]  # PyTorch wants them sorted
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.tensor(x), lengths)
    out, last = theirs(packed)
    out = torch.nn.utils.rnn.pad_packed_sequence(out)[0]
    (out.sin().sum() + h_of(last).sum()).backward()
    mine, end = ours(x, lengths=lengths)
    close(mine, out.detach().numpy())
    close(h_of(end), h_of(last).detach().numpy())
    weights = Tensor(np.cos(mine.numpy()))  # the derivative of Σ sin
    ((mine * weights).sum() + h_of(end).sum()).backward()
    for p, q in zip(ours.parameters(), theirs.parameters()):
        close(p.grad, q.grad.numpy(), 1e-10)
