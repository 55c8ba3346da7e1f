"""save and load: what goes in comes out, files appear whole or not at all, and nothing in them is run."""

from __future__ import annotations

import io
import json
import math
import os
import pickle
import stat
import zipfile

import numpy as np
import pytest

import metagrad
from metagrad import Tensor, nn, optim
from metagrad.files import written_beside


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.npz"


def round_trip(state, path):
    metagrad.save(state, path)
    return metagrad.load(path)


def only_file(folder) -> str:
    (name,) = os.listdir(folder)
    return name


# ── what goes in comes out ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -(2**127),
        2**128 - 1,
        0.1,
        5e-324,
        math.inf,
        -math.inf,
        "",
        "观音 é \ud800 \0",
        [],
        (),
        {},
        [1, [2.0, (None, "x", ())]],
        (0.9, 0.999),
        {"": {"a/b": 1, "a": {"b": 2}}, "dict": {"list": [{"value": None}]}},
    ],
    ids=repr,
)
def test_plain_values_come_back_equal_and_of_their_type(value, path):
    found = round_trip(value, path)
    assert found == value and type(found) is type(value)


def test_nan_and_negative_zero_come_back(path):
    found = round_trip([math.nan, -0.0], path)
    assert math.isnan(found[0]) and math.copysign(1, found[1]) == -1


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.arange(6).reshape(2, 3).T,
        np.arange(10)[::3],
        np.array(3.5),
        np.zeros((0, 4), np.float16),
        np.array([True, False]),
        np.array(["观音", "b"]),
        np.array([1e-12, 123456.789, -0.0, np.nan, np.inf], np.float32),
        np.array([1 + 2j]),
        np.array([2**64 - 1], np.uint64),
        np.arange(3, dtype=">i4"),
        np.array([(1, 2.0)], dtype=[("id", "i8"), ("x", "f4")]),
        np.array(["2024-01-01"], "datetime64[D]"),
    ],
    ids=lambda array: f"{array.dtype} {array.shape}",
)
def test_arrays_come_back_bit_for_bit(array, path):
    found = round_trip({"x": array}, path)["x"]
    assert type(found) is np.ndarray and found.dtype == array.dtype and found.shape == array.shape
    assert found.tobytes() == array.tobytes()
    found[...] = found[::-1] if found.ndim else found  # and may be written


def test_numpy_scalars_come_back_as_such_and_tensors_as_arrays(path):
    tensor = Tensor([1.0], requires_grad=True)
    state = {"a": np.float32(0.1), "b": np.int64(3), "c": np.bool_(True), "d": tensor}
    found = round_trip(state, path)
    for name in "abc":
        assert found[name] == state[name] and type(found[name]) is type(state[name])
    assert type(found["d"]) is np.ndarray and found["d"].dtype == np.float32


@pytest.mark.parametrize("kind", ["PCG64", "MT19937", "Philox", "SFC64"])
def test_a_generator_goes_on_where_it_was_saved(kind, path):
    rng = np.random.Generator(getattr(np.random, kind)(7))
    rng.random(3)
    found = round_trip(rng.bit_generator.state, path)
    again = np.random.Generator(getattr(np.random, kind)(0))
    again.bit_generator.state = found
    np.testing.assert_array_equal(again.random(5), rng.random(5))


def test_a_whole_checkpoint_comes_back(path):
    metagrad.manual_seed(0)
    model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 2))
    optimizer = optim.Adam(model.parameters())
    schedule = optim.StepLR(optimizer, 3)
    model(np.array([1, 2])).sum().backward()
    optimizer.step()
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "schedule": schedule.state_dict(),
        "epoch": 3,
        "best": None,
    }
    found = round_trip(state, path)
    np.testing.assert_equal(found, state)
    assert found["optimizer"]["param_groups"][0]["betas"] == (0.9, 0.999)
    nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 2)).load_state_dict(found["model"])


@pytest.mark.parametrize(
    "keys",
    [
        ["a/b", "a"],
        ["structure.json", "structure", "__structure__"],
        ["x", "x.npy", "x.npy.npy"],
        ["../up", "/absolute", "..", "", "/"],
        ["file", "args", "allow_pickle", "arr_0"],
        ["nul\0a", "nul\0b", "lone \ud800", "lone \udfff", "q?", "q*"],
        ["long" * 100, "long" * 101, "w" * 70_000],
        ["观音", "é", "e\u0301"],
        ["a~2", "a", "a\0"],
    ],
    ids=lambda keys: repr(keys[0])[:20],
)
def test_keys_never_collide_and_may_be_any_string(keys, path):
    state = {key: np.array([i]) for i, key in enumerate(keys)}
    state["a"] = {"b": np.array([-1]), "b.npy": np.array([-2])}
    np.testing.assert_equal(round_trip(state, path), state)


def test_members_are_named_after_their_place_and_numpy_reads_them(path):
    metagrad.save({"model": {"out.weight": np.ones(2)}, "rates": [np.zeros(1)]}, path)
    with np.load(path) as archive:
        assert archive["model/out.weight"].tolist() == [1, 1]
        assert archive["rates/0"].tolist() == [0]


def test_equal_states_make_equal_files(tmp_path):
    for name in ("a", "b"):
        metagrad.save({"x": np.arange(3), "lr": 0.1}, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with zipfile.ZipFile(tmp_path / "a") as archive:
        assert {member.date_time[:3] for member in archive.infolist()} == {(1980, 1, 1)}, "no time of day"


def test_an_array_may_be_larger_than_4_gib(path):
    metagrad.save(np.arange(3), path)
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("array.npy").header_offset
    header = path.read_bytes()[start:]
    name, extra = (int.from_bytes(header[at : at + 2], "little") for at in (26, 28))
    assert extra and header[30 + name : 32 + name] == b"\x01\x00", "the zip64 field, which holds sizes in 64 bits"


# ── what cannot be saved ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"model": {"f": print}}, "model/f is a builtin_function_or_method"),
        ({"a": [1, {2, 3}]}, "a/1 is a set"),
        (b"bytes", "the state is a bytes"),
        ({"a": 1j}, "a is a complex"),
        ({"a": {1: 2}}, "a has the key 1, keys are strings"),
        ({1: 2}, "the state has the key 1"),
        ({"a": np.array([None, "x"])}, "a is an array of objects, which only pickle"),
        (np.array([{}]), "the state is an array of objects"),
        ({"a": np.zeros(1, [("x", object)])}, "a is an array of objects"),
        (nn.Linear(1, 1), "the state is a Linear"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_saved_is_named_before_anything_is_written(state, words, path, tmp_path):
    path.write_text("old")
    with pytest.raises(TypeError, match=words):
        metagrad.save(state, path)
    assert only_file(tmp_path) == path.name and path.read_text() == "old"


# ── files appear whole or not at all ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_save_that_fails_half_way_keeps_the_old_file_and_leaves_nothing(error, path, tmp_path, monkeypatch):
    metagrad.save({"x": 1}, path)
    write, written = np.lib.format.write_array, []

    def fail(member, array, **options):
        if written:
            raise error
        written.append(write(member, array, **options))

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    with pytest.raises(type(error)):
        metagrad.save({"x": np.zeros(5), "y": np.zeros(5)}, path)
    assert metagrad.load(path) == {"x": 1}
    assert only_file(tmp_path) == path.name


def test_the_old_file_is_in_place_until_the_new_one_is_complete(path, tmp_path):
    path.write_text("old")
    with written_beside(path) as beside:
        beside.write_text("新", encoding="utf-8")
        assert path.read_text() == "old" and len(os.listdir(tmp_path)) == 2
    assert path.read_text(encoding="utf-8") == "新" and only_file(tmp_path) == path.name


@pytest.mark.skipif(os.name != "posix", reason="rights and links as on Unix")
def test_a_new_file_has_the_usual_rights_and_an_old_one_keeps_its_own(path):
    mask = os.umask(0o027)
    try:
        metagrad.save(1, path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o600)
        metagrad.save(2, path)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and metagrad.load(path) == 2


@pytest.mark.skipif(os.name != "posix", reason="rights and links as on Unix")
def test_a_link_is_followed(path, tmp_path):
    (tmp_path / "runs").mkdir()
    path.symlink_to(tmp_path / "runs" / "7.npz")
    metagrad.save("x", path)
    assert path.is_symlink() and metagrad.load(tmp_path / "runs" / "7.npz") == "x"


def test_paths_may_be_strings_and_keep_the_name_they_are_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    metagrad.save([1], "no suffix")
    assert metagrad.load("no suffix") == [1] and only_file(tmp_path) == "no suffix"


def test_a_folder_or_a_missing_folder_is_refused_as_a_place_to_save(tmp_path):
    with pytest.raises(ValueError, match="exists and is not a file"):
        metagrad.save(1, tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no folder .*missing'"):
        metagrad.save(1, tmp_path / "missing" / "x.npz")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="devices as on Unix")
def test_a_device_is_not_replaced_by_a_file():
    with pytest.raises(ValueError, match="'/dev/null' exists and is not a file"):
        metagrad.save(1, os.devnull)


# ── what is not loaded ───────────────────────────────────────────────────────────────────────────────


class Crafted:
    """Unpickling it makes a file."""

    def __init__(self, path) -> None:
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def zipped(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_", "."), content)
    return file.getvalue()


def npy(array, allow_pickle: bool = False) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=allow_pickle)
    return file.getvalue()


def test_a_crafted_pickle_is_refused_and_not_run(path, tmp_path):
    trace = tmp_path / "it ran"
    objects = npy(np.array([Crafted(trace)]), allow_pickle=True)
    for content in (
        pickle.dumps(Crafted(trace)),
        objects,
        zipped(data_pkl=pickle.dumps(Crafted(trace))),
        zipped(structure_json=b'{"array": "x.npy"}', x_npy=objects),
        zipped(structure_json=b'{"array": "x.npy"}', x_npy=pickle.dumps(Crafted(trace))),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="state.npz is not a file that metagrad.save wrote.*run code"):
            metagrad.load(path)
    assert not trace.exists()
    pickle.loads(pickle.dumps(Crafted(trace))).close()
    assert trace.exists(), "the pickle would have run"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"text",
        npy(np.ones(3)),
        zipped(),
        zipped(x_npy=npy(np.ones(3))),
        *(
            zipped(structure_json=structure.encode())
            for structure in (
                "",
                "[]",
                "3",
                "{}",
                '{"array": "gone.npy"}',
                '{"array": 3}',
                '{"code": "print(1)"}',
                '{"list": 3}',
                '{"dict": []}',
                '{"value": 1, "list": []}',
                '{"list": [' * 5000 + "]}" * 5000,
            )
        ),
        zipped(structure_json=b'{"array": "x.npy"}', x_npy=npy(np.ones(3))[:-1]),
    ],
    ids=range(17),
)
def test_other_files_are_refused_in_one_sentence(content, path):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="state.npz is not a file that metagrad.save wrote, or .*damaged"):
        metagrad.load(path)


def test_a_file_cut_off_anywhere_is_refused(path):
    metagrad.save({"x": np.arange(3), "y": [1, None]}, path)
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match="damaged"):
            metagrad.load(path)


def test_a_flipped_bit_never_gives_other_values(path):
    state = {"x": np.arange(40), "y": [1, None, "word"]}
    metagrad.save(state, path)
    content = path.read_bytes()
    refused = 0
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            np.testing.assert_equal(metagrad.load(path), state)
        except ValueError as error:
            assert "damaged" in str(error)
            refused += 1
    assert refused > len(content) / 2


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="gone.npz"):
        metagrad.load(tmp_path / "gone.npz")
    with pytest.raises((IsADirectoryError, PermissionError), match=tmp_path.name):
        metagrad.load(tmp_path)


def test_the_structure_is_readable_json(path):
    metagrad.save({"lr": 0.1, "w": np.ones(1)}, path)
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read("structure.json")) == {"dict": {"lr": {"value": 0.1}, "w": {"array": "w.npy"}}}
