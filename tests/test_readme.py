"""The README's code runs, its commands are the ones that CI runs, and its numbers name their script."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_python_block_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) >= 2
    printed = []
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {"__name__": "readme"})
        printed.append(capsys.readouterr().out)
    assert float(printed[0]) < 0.01
    assert "-20" in printed[-1]


def test_ci_runs_the_readmes_test_command():
    commands = re.findall(r"^    (pip install .*)$", README, flags=re.MULTILINE)
    assert [c for c in commands if "[test]" in c] == ['pip install ".[test]" && python -m pytest']
    assert [c for c in commands if "examples/sgns.py" in c] == ["pip install . && python examples/sgns.py"]


def test_every_file_that_is_named_is_there():
    for name in set(re.findall(r"`((?:examples|tests|metagrad|data)/[\w/.]+)`", README)):
        assert (ROOT / name).exists(), name
