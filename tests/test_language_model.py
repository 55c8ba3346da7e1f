"""examples/language_model.py learns, shortened; and neither of its models looks ahead."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from metagrad import Tensor

SCRIPT = Path(__file__).parents[1] / "examples" / "language_model.py"
spec = importlib.util.spec_from_file_location("language_model", SCRIPT)
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)


def printed(*arguments):
    command = [sys.executable, str(SCRIPT), "--most", "20000", "--dim", "24", "--length", "24", "--batch-size", "16"]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, encoding="utf-8")


@pytest.mark.parametrize("model", ["gru", "attention"])
def test_it_learns_which_characters_follow(model):
    out = printed("--model", model, "--lr", "0.01", "--epochs", "2", "--write", "20")
    assert out.returncode == 0, out.stderr
    guess = float(re.search(r"a guess has loss ([\d.]+)", out.stdout)[1])
    losses = [float(loss) for loss in re.findall(r"at its end ([\d.]+)", out.stdout)]
    assert losses[-1] < losses[0] < guess and losses[-1] < 2.6
    assert out.stdout.splitlines()[-1].startswith("the") or "the" in out.stdout


@pytest.mark.parametrize("kind", [example.Recurrent, example.Attention])
def test_no_score_depends_on_characters_behind_it(kind):
    model = kind(10, 8, 6)
    ids = np.array([[1, 2, 3, 4, 5, 6]])
    changed = np.array([[1, 2, 3, 9, 8, 7]])
    before, after = (model(Tensor(x)).numpy()[0] for x in (ids, changed))
    np.testing.assert_array_equal(before[:3], after[:3])
    assert not np.allclose(before[3:], after[3:])


def test_a_text_that_is_too_short_is_refused_with_advice():
    out = printed("--most", "100")
    assert out.returncode == 1 and "choose a smaller --batch-size" in out.stderr and "Traceback" not in out.stderr
