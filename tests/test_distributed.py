"""Data-parallel training: the ranks together do what one process does, and none waits for one that failed."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from metagrad import Tensor, distributed, nn
from metagrad import functional as F
from metagrad.data import BatchSampler, DataLoader, RandomSampler, TensorDataset
from metagrad.distributed import DistributedOptimizer, DistributedSampler
from metagrad.optim import SGD, Adagrad, Adam
from tests import standin

ROOT = Path(__file__).parents[1]
MPIEXEC = Path(sys.executable).parent / "mpiexec"
needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or not MPIEXEC.exists(), reason="mpi4py and mpich are not installed"
)
V, DIM, N, BATCH = 11, 4, 48, 8


class Model(nn.Module):
    """A lookup table, and a layer that not every example needs."""

    def __init__(self, sparse):
        rng = np.random.default_rng(7)
        self.table = nn.Embedding(V, DIM, dtype=np.float64, sparse=sparse)
        self.out = nn.Linear(DIM, 3, dtype=np.float64)
        self.rare = nn.Parameter(np.zeros(DIM))
        self.table.weight.use_memory(rng.standard_normal((V, DIM)))
        self.out.weight.use_memory(rng.standard_normal((3, DIM)))
        self.out.bias.use_memory(np.zeros(3))

    def forward(self, words, labels):
        h = self.table(words).tanh()
        if (words.numpy() == 3).any():  # on some ranks it gets no gradient at all
            h = h + self.rare * Tensor((words.numpy() == 3)[:, None].astype(np.float64), device=words.device)
        return F.cross_entropy(self.out(h), labels, reduction="sum") / BATCH


def data():
    rng = np.random.default_rng(1)
    return TensorDataset(rng.integers(0, V, N), rng.integers(0, 3, N))


def trained(optimizer, sparse, epochs=2, device="cpu"):
    """The parameters after training on this rank's shares, of which there may be just one."""
    model = Model(sparse).to(device)
    distributed.broadcast(model)
    steps = DistributedOptimizer(optimizer(model.parameters(), lr=0.1))
    samples = data()
    batches = BatchSampler(RandomSampler(samples, generator=5), BATCH)
    loader = DataLoader(samples, batch_sampler=DistributedSampler(batches))
    for _ in range(epochs):
        for words, labels in loader:
            loss = model(Tensor(words, device=device), Tensor(labels, device=device))
            steps.zero_grad()
            loss.backward()
            steps.step()
    return {name: value.numpy().tolist() for name, value in model.named_parameters()}


CASES = [(optimizer, sparse) for optimizer in (SGD, Adagrad, Adam) for sparse in (True, False)]


def all_cases(folder, device):
    """What each rank of the test runs."""
    if device != "cpu":
        sys.modules["cupy"] = standin.cupy
    results = [trained(*case, device=device) for case in CASES]
    (Path(folder) / f"{distributed.rank()}.json").write_text(json.dumps(results))


def launched(ranks, code, seconds=60, **options):
    """A run of `code` on several ranks: exit code, output, seconds."""
    preamble = "from tests.test_distributed import *\n"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    start = time.monotonic()
    done = subprocess.run(
        [str(MPIEXEC), "-n", str(ranks), sys.executable, "-c", preamble + code],
        capture_output=True, text=True, env=env, timeout=seconds, cwd=ROOT, **options,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr, time.monotonic() - start


@needs_mpi
@pytest.mark.parametrize("ranks, device", [(1, "cpu"), (2, "cpu"), (4, "cpu"), (2, "cuda:0")])
def test_ranks_together_train_as_one_process_does(ranks, device, tmp_path):
    """SGD, Adagrad and Adam, with rows and with whole gradients, to rounding; and the same bits on every rank.

    The GPU is the stand-in for one.
    """
    code, said, _ = launched(ranks, f"with distributed.session(): all_cases({str(tmp_path)!r}, {device!r})")
    assert code == 0, said
    per_rank = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(ranks)]
    assert all(results == per_rank[0] for results in per_rank)
    for case, found in zip(CASES, per_rank[0], strict=True):
        for name, expected in trained(*case).items():
            np.testing.assert_allclose(found[name], expected, rtol=1e-9, atol=1e-9, err_msg=f"{case} {name}")


@needs_mpi
def test_rows_travel_as_rows_while_they_are_few_and_as_a_table_where_they_are_many():
    code, said, _ = launched(
        2,
        """
with distributed.session():
    table = nn.Embedding(10, 2, dtype=np.float64)
    sent = []
    comm = distributed.world()

    class Watched:
        def __getattr__(self, name):
            if name == "Allreduce":
                sent.append(name)
            return getattr(comm, name)

    distributed._world = Watched()
    for words, expected, by_table in (
        ([1, 1, distributed.rank() + 1], [0, 5, 1, 0, 0, 0, 0, 0, 0, 0], False),
        ([0, 1, 2, 3, 4, 5, 9], [2, 2, 2, 2, 2, 2, 0, 0, 0, 2], True),
    ):
        table.weight.grad = None
        table(np.array(words)).sum().backward()
        distributed.add_up([table.weight])
        grad = table.weight.grad
        assert type(grad).__name__ == "Rows" and grad.dense()[:, 0].tolist() == expected, grad.dense()
        assert sorted(set(grad.index.tolist())) == [i for i, n in enumerate(expected) if n]
        assert bool(sent) == by_table
    table.weight.grad = None
    if distributed.rank() == 1:
        table(np.array([4])).sum().backward()
    distributed.add_up([table.weight])
    assert table.weight.grad.dense()[4].tolist() == [1, 1]
    distributed.log("fine")
""",
    )
    assert code == 0 and said.strip() == "fine", said


@needs_mpi
def test_ranks_with_other_parameters_are_told_so():
    code, said, _ = launched(
        2, "with distributed.session(): distributed.add_up(list(nn.Linear(2, 2 + distributed.rank()).parameters()))"
    )
    assert code != 0, said
    assert "parameter 0 of the optimizer is float32 (2, 2) on rank 0 and float32 (3, 2) on rank 1" in said, said


@needs_mpi
def test_broadcast_gives_all_the_parameters_of_rank_0_or_says_what_differs():
    code, said, _ = launched(
        2,
        """
with distributed.session():
    layer = nn.Linear(2, 3)
    layer.scale = nn.Parameter(float(distributed.rank()))  # of no axes
    layer.turned = nn.Parameter(np.zeros((2, 3)))
    if distributed.is_main():  # its memory runs the other way
        layer.turned.use_memory(np.array([[1.0, 2], [3, 4], [5, 6]]).T)
    distributed.broadcast(layer)
    both = distributed.world().allgather([p.numpy().tolist() for p in layer.parameters()])
    assert both[0] == both[1]
    assert layer.scale.item() == 0 and layer.turned.numpy().tolist() == [[1, 3, 5], [2, 4, 6]]
    distributed.broadcast(nn.Linear(2, 3 + distributed.rank()))
""",
    )
    assert code != 0 and "weight is float32 (3, 2) on rank 0 and float32 (4, 2) on rank 1" in said, said


@needs_mpi
@pytest.mark.parametrize("end", ["raise ValueError('bad line 7')", "sys.exit('bad line 7')", "os.kill(os.getpid(), 9)"])
def test_a_rank_that_ends_badly_ends_all_within_seconds(end):
    code, said, seconds = launched(
        2,
        f"""
with distributed.session():
    for step in range(10**9):
        if distributed.rank() == 1 and step == 5:
            {end}
        distributed.world().allreduce(1.0)
""",
    )
    assert code != 0 and seconds < 30
    if "kill" in end:
        assert re.search("KILLED|signal 9|Killed", said), said
    else:
        assert "rank 1 of 2 failed, so all end" in said and "bad line 7" in said


SUM, END = "the sum of the gradients", "the end of its session"


@needs_mpi
@pytest.mark.parametrize("work, places", [
    ("step_once(); distributed.rank() == 0 and step_once()", (SUM, END)),
    ("distributed.rank() == 0 and sys.exit(0); step_once()", (END, SUM)),
    ("distributed.save({}, os.devnull) if distributed.rank() else step_once()", (SUM, "saving")),
    ("distributed.mean(1.0) if distributed.rank() else distributed.broadcast(layer)", ("broadcast", "a mean")),
])  # fmt: skip
def test_ranks_that_come_to_different_places_are_told_where(work, places):
    """MPI alone would let them wait for each other forever."""
    code, said, seconds = launched(
        2,
        f"""
with distributed.session():
    layer = nn.Linear(2, 2)
    optimizer = DistributedOptimizer(SGD(layer.parameters()))

    def step_once():
        layer(Tensor(np.ones((1, 2), np.float32))).sum().backward()
        optimizer.step()

    {work}
""",
    )
    assert code != 0 and "rank 0 has come to {} and rank 1 to {}:".format(*places) in said, said
    assert seconds < 30


@needs_mpi
def test_training_outside_of_a_session_is_refused():
    code, said, _ = launched(2, "DistributedOptimizer(SGD(nn.Linear(2, 2).parameters()))")
    assert code != 0 and "train within `with distributed.session():`" in said, said


@needs_mpi
def test_samplers_with_other_seeds_are_refused():
    code, said, _ = launched(
        2,
        """
with distributed.session():
    for seed in (3, distributed.rank()):
        batches = BatchSampler(RandomSampler(64, generator=seed), 8)
        drawn = [part.tolist() for part in DistributedSampler(batches)]
        assert len(drawn) == 8 and {len(part) for part in drawn} == {4}
        distributed.log("fine")
""",
    )
    assert code != 0 and said.count("fine") == 1 and "ranks 0 and 1 draw different batches" in said, said


@needs_mpi
def test_gradients_of_a_gpu_go_to_an_mpi_that_reads_it_as_they_are():
    """Here MPI and GPU are stand-ins: what is held is which memory is sent, and that kernels are waited for."""
    code, said, _ = launched(
        2,
        """
sys.modules["cupy"] = standin.cupy
waited = []
stream = type("Stream", (), {"synchronize": lambda self: waited.append(True)})()
standin.cupy.cuda.get_current_stream = lambda: stream
host = lambda buffer: buffer._array

class ReadsGPUs:
    def __getattr__(self, name):
        return getattr(comm, name)

    def Get_info(self):
        return {"mpi_memory_alloc_kinds": "mpi,system,cuda:device"}

    def Allreduce(self, mine, total):
        comm.Allreduce(host(mine), host(total))

    def Allgatherv(self, mine, everything):
        comm.Allgatherv(host(mine), (host(everything[0]), everything[1]))

with distributed.session():
    comm, distributed._world = distributed.world(), ReadsGPUs()
    for device in ("cuda:0", "cuda:1"):
        for words, sparse in (([1, 8], True), ([1, 2, 3, 4, 5, 6, 7, 8], True), ([1, 8], False)):
            table = nn.Embedding(V, DIM, sparse=sparse).to(device)
            distributed.broadcast(table)
            (table(Tensor(words, device=device)) ** 2).sum().backward()
            dense = lambda grad: (grad.dense() if sparse else grad.data).get()
            expected = 2 * dense(table.weight.grad)
            distributed.add_up([table.weight])
            grad = table.weight.grad
            assert type(grad).__name__ == ("Rows" if sparse else "Tensor")
            assert np.array_equal(dense(grad), expected) and expected.any()
    distributed.log(f"waited {len(waited)} times")
""",
    )
    assert code == 0 and re.search(r"waited [1-9]\d* times", said), said


@needs_mpi
def test_saving_is_rank_0s_and_a_failure_is_everybodys(tmp_path):
    code, said, _ = launched(
        2,
        f"""
import metagrad
with distributed.session():
    distributed.save({{"rank": distributed.rank()}}, {str(tmp_path / "state.npz")!r})
    assert metagrad.load({str(tmp_path / "state.npz")!r}) == {{"rank": 0}}
    try:
        distributed.save({{}}, {str(tmp_path / "no" / "state.npz")!r})
    except FileNotFoundError:
        print("raised", flush=True)
""",
    )
    assert code == 0 and said.count("raised") == 2, said


def test_alone_nothing_is_needed_and_nothing_changes(tmp_path):
    """Neither mpi4py nor a launcher."""
    code = """
import sys
sys.modules["mpi4py"] = None
from metagrad import Tensor, distributed, nn
from metagrad.optim import SGD
with distributed.session():
    layer = nn.Linear(2, 1)
    distributed.broadcast(layer)
    optimizer = distributed.DistributedOptimizer(SGD(layer.parameters(), lr=0.1))
    layer(Tensor([[1.0, 2.0]])).sum().backward()
    before = layer.bias.item()
    optimizer.step()
    assert abs(layer.bias.item() - (before - 0.1)) < 1e-6
    assert (distributed.rank(), distributed.size(), distributed.is_main()) == (0, 1, True)
    assert distributed.mean(3.0) == 3.0 and distributed.share([1, 2]) == [1, 2]
    raise SystemExit(7)
"""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "OMPI", "SLURM"))}
    env |= {"PYTHONPATH": str(ROOT), "SLURM_NTASKS": "4"}  # as in a batch script, which asks for four but is one
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=tmp_path)
    assert done.returncode == 7


@needs_mpi
def test_a_launcher_of_another_mpi_is_told_apart():
    """Else every process would train alone, and all would save over each other."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMPI_COMM_WORLD_SIZE": "2"}
    code = "from metagrad import distributed; distributed.rank()"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 1 and "started 2 processes, and each finds itself alone" in done.stderr, done.stderr


def test_a_launcher_without_mpi4py_is_told_what_to_install(tmp_path):
    code = "import sys; sys.modules['mpi4py'] = None; from metagrad import distributed; distributed.rank()"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PMI_SIZE": "2"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 1 and "pip install metagrad[mpi]" in done.stderr


def test_shares_are_the_whole_batch_and_a_batch_that_is_too_small_is_refused(monkeypatch):
    monkeypatch.setattr(distributed, "size", lambda: 3)
    parts = []
    for rank in range(3):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        parts.append([list(part) for part in DistributedSampler(BatchSampler(range(10), 5))])
        assert len(DistributedSampler(BatchSampler(range(10), 5))) == 2
    assert [sorted(sum(batch, [])) for batch in zip(*parts, strict=True)] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    with pytest.raises(ValueError, match="a batch of 2 has nothing for one of 3 ranks"):
        distributed.share([1, 2])


# The example -------------------------------------------------------------------------------------------------------

SCRIPT = ROOT / "examples" / "sampled_softmax.py"
SHORT = ["--dim", "16", "--min-count", "80", "--batch-size", "1024", "--lr", "0.01", "--epochs", "1", "--window", "2"]


def example(*arguments, ranks=0):
    launcher = [str(MPIEXEC), "-n", str(ranks)] if ranks else []
    command = [*launcher, sys.executable, str(SCRIPT), *SHORT, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", env={**os.environ, "OMP_NUM_THREADS": "1"}
    )


@pytest.mark.parametrize("k", [4, 9])
def test_zero_tables_give_log_of_the_candidates(k, device):
    spec = importlib.util.spec_from_file_location("sampled_softmax", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.SampledSoftmax(V, 8).to(device)
    for table in model.parameters():
        nn.init.zeros_(table)
    rng = np.random.default_rng(0)
    targets, candidates = rng.integers(0, V, 6), rng.integers(0, V, (6, 1 + k))
    loss = model(Tensor(targets, device=device), Tensor(candidates, device=device), 6)
    assert loss.item() == pytest.approx(np.log(1 + k), abs=1e-6)
    loss.backward()


@needs_mpi
def test_the_example_learns_and_two_ranks_print_what_one_does(tmp_path):
    # In float32 Adam divides roundings by gradients as small as they are.
    one = example("--dtype", "float64", "--output", str(tmp_path / "one.vec"))
    two = example("--dtype", "float64", "--output", str(tmp_path / "two.vec"), ranks=2)
    assert one.returncode == two.returncode == 0, one.stderr + two.stderr
    losses = [float(re.search(r"loss (\d\.\d+)", run.stdout)[1]) for run in (one, two)]
    assert losses[0] < 1.7 and abs(losses[0] - losses[1]) < 1e-3  # a guess has ln 6 = 1.79
    from metagrad.word2vec import WordVectors

    a, b = (WordVectors.load(tmp_path / name).vectors for name in ("one.vec", "two.vec"))
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_the_example_refuses_what_makes_no_sense(tmp_path):
    assert example("--batch-size", "1000").returncode == 2
    (tmp_path / "small.txt").write_text("a b c\n" * 90)
    done = example("--corpus", str(tmp_path / "small.txt"))
    assert done.returncode == 1 and "less than a batch" in done.stderr and "Traceback" not in done.stderr
