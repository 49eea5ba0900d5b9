"""What docs/curriculum.md shows is so."""

from __future__ import annotations

import re
from pathlib import Path

from mle_ideator.rl.buffer.config import CurriculumConfig

PAGE = (Path(__file__).parents[2] / "docs" / "curriculum.md").read_text(encoding="utf-8")


def test_the_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(code, "docs/curriculum.md", "exec"), {})
    share, text = capsys.readouterr().out.splitlines()
    assert share == "0.0"
    assert text.startswith(("drawn first", "not drawn"))
    assert (tmp_path / "buffer" / "buffer.npz").exists()


def test_every_constant_is_described_with_its_default():
    rows = re.findall(r"^\| (\w+) \| ([\w.]+) \| (?:our choice|AceGRPO) \| .+ \|$", PAGE, re.M)
    defaults = CurriculumConfig()
    assert dict(rows) == {
        name: str(getattr(defaults, name)) for name in CurriculumConfig.__struct_fields__
    }
