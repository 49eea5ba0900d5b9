"""Two whole solutions as they are written. `UPDATE_GOLDEN=1 pytest` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"
SOLUTIONS = {
    "solution_first.py": ("regression", ("model_linear",)),
    "solution_rich.py": (
        "several_classes",
        ("model_boosting", "date_parts", "target_encoding", "impute_missing", "blend", "calibrate"),
    ),
}


@pytest.mark.parametrize("name", SOLUTIONS)
def test_generated_solutions_are_as_recorded(toys, name):
    form, operations = SOLUTIONS[name]
    code = toys[form].code(*operations)
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.mkdir(exist_ok=True)
        (GOLDEN / name).write_text(code, encoding="utf-8")
    assert code == (GOLDEN / name).read_text(encoding="utf-8")
