"""The offline pair on every bundled task: what it gains, and how long it takes.

    python tests/performance/bench_offline_pair.py [--ideator SPEC] [--seed N] [TASK ...]

12 steps, seed 0. Targets: the final private score beats the trivial baseline on every task and the
first model on at least six of eight, within three minutes a task on two cores.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mle_ideator.benchmarks.sources import all_cards
from mle_ideator.journal import read_journal
from mle_ideator.results import record_of

STEPS = 12


def run(task: str, ideator: str, seed: int) -> dict[str, Any]:
    """One session: its summary, with the private score of the first solution."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "run")
        command = [
            *(sys.executable, "-m", "mle_ideator", "run", "--task", task, "--ideator", ideator),
            *("--steps", str(STEPS), "--seed", str(seed), "--out", str(out), "--json"),
        ]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        first = record_of(read_journal(out)).solutions[0].scores.private
        return json.loads(done.stdout) | {"first": first.value if first else None}


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--ideator", default="offline")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("tasks", nargs="*")
    wanted = options.parse_args()
    cards = [card for card in all_cards() if not wanted.tasks or card.id in wanted.tasks]
    over_baseline = over_first = 0
    print("| task | metric | baseline | first model | final | improvements | seconds |")
    print("|---|---|---|---|---|---|---|")
    for card in cards:
        summary = run(card.id, wanted.ideator, wanted.seed)
        final, base = summary["best"]["private"], summary["baseline"]["private"]
        sign = 1 if card.higher_is_better else -1
        over_baseline += sign * final > sign * base
        over_first += sign * final > sign * summary["first"]
        arrow = "↑" if card.higher_is_better else "↓"
        print(
            f"| {card.id} | {card.metric} {arrow} | {base:.4g} | {summary['first']:.4g} "
            f"| {final:.4g} | {summary['improvements']} | {summary['duration_s']:.0f} |",
            flush=True,
        )
    print(f"\nbetter than the baseline: {over_baseline} of {len(cards)}")
    print(f"better than the first model: {over_first} of {len(cards)}")


if __name__ == "__main__":
    main()
