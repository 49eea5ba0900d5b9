"""How alike scripts are: by what they do, not by how they are written."""

import re
import time
from pathlib import Path

import pytest

from mle_ideator.benchmarks.fair_play import Pair, similar_pairs, similarity

GOLDEN = Path(__file__).parents[1] / "golden"
FIRST = (GOLDEN / "solution_first.py").read_text(encoding="utf-8")
RICH = (GOLDEN / "solution_rich.py").read_text(encoding="utf-8")
OTHER = """
import torch
from torch import nn
import polars as pl
rows = pl.read_csv("input/train.csv")
x = torch.tensor(rows.drop("y").to_numpy())
net = nn.Sequential(nn.Linear(x.shape[1], 64), nn.ReLU(), nn.Linear(64, 1))
optimiser = torch.optim.AdamW(net.parameters(), lr=1e-3)
for epoch in range(50):
    optimiser.zero_grad()
    loss = ((net(x).squeeze() - torch.tensor(rows["y"].to_numpy())) ** 2).mean()
    loss.backward()
    optimiser.step()
print("Validation score:", float(loss))
"""


def renamed(code: str) -> str:
    for name in ("read_tables", "rows", "test", "fit", "predict", "folds", "numbers", "values"):
        code = re.sub(rf"(?<![.\w'\"]){name}\b(?!['\"])", f"quite_another_{name}", code)
    return code


def laid_out_anew(code: str) -> str:
    """Other comments, blank lines, indents, texts, numbers and docstrings."""
    lines = [line.replace("    ", "  ") + "  # as said" * (not line.strip().startswith(('"', "'")))
             for line in code.splitlines() if "'''" not in line and '"""' not in line
             and not line.strip().startswith("#")]  # fmt: skip
    return "\n\n".join(lines).replace("42", "7")


@pytest.mark.parametrize("code", [FIRST, RICH, OTHER])
def test_a_script_is_like_itself(code):
    assert similarity(code, code) == 1


@pytest.mark.parametrize(
    "changed",
    [
        OTHER.replace("net", "modell").replace("rows", "zeilen").replace("optimiser", "opt"),
        laid_out_anew(OTHER),
        OTHER.replace('"y"', "'target'").replace("64", "128"),
        OTHER.replace("import torch\n", "import torch as th\n").replace("torch.t", "th.t")
        .replace("torch.o", "th.o"),
        '"""Another docstring."""\n' + OTHER,
        OTHER.replace("nn.ReLU(), nn.Linear(64, 1))", "\n  nn.ReLU(),\n  nn.Linear(64, 1),\n)"),
    ],
    ids=["names", "layout", "constants", "aliases", "docstring", "commas"],
)  # fmt: skip
def test_disguises_do_not_matter(changed):
    assert changed != OTHER
    assert similarity(OTHER, changed) > 0.9


def test_long_scripts_under_other_names():
    assert similarity(RICH, renamed(RICH)) > 0.85


def test_different_scripts_have_little_in_common():
    assert similarity(FIRST, OTHER) < 0.05
    assert similarity(RICH, OTHER) < 0.05


def test_what_was_copied_in_part_is_in_between():
    assert 0.3 < similarity(RICH, RICH[: len(RICH) // 2]) < 0.7


def test_another_library_is_another_script():
    assert similarity(OTHER, OTHER.replace("AdamW", "SGD")) < 1


@pytest.mark.parametrize("code", ["", "x", "x = 1", "def f(:", "'''", "\0\xff"])
def test_short_and_broken_scripts(code):
    assert similarity(code, code) == 1
    assert similarity(code, RICH) < 0.1


def test_pairs_are_what_one_by_one_says():
    codes = {"d": OTHER, "a": RICH, "c": renamed(RICH), "b": FIRST, "e": OTHER}
    pairs = similar_pairs(codes, 0.2)
    expected = [
        Pair(x, y, similarity(codes[x], codes[y]))
        for x in sorted(codes)
        for y in sorted(codes)
        if x < y and similarity(codes[x], codes[y]) >= 0.2
    ]
    assert sorted((p.one, p.other) for p in pairs) == [(p.one, p.other) for p in expected]
    assert Pair("d", "e", 1.0) in pairs
    assert [p.similarity for p in pairs] == pytest.approx(
        sorted((p.similarity for p in expected), reverse=True)
    )


def test_no_or_one_script_has_no_pairs():
    assert similar_pairs({}) == []
    assert similar_pairs({"a": RICH}) == []


def test_many_scripts_take_seconds():
    codes = {f"r{i}": RICH.replace("SEED", f"SEED_{i}") for i in range(100)}
    start = time.process_time()
    pairs = similar_pairs(codes, 0.5)
    assert len(pairs) == 100 * 99 / 2
    assert time.process_time() - start < 20
