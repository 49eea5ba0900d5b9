"""Executions to a given skill: the adaptive curriculum against uniform and against each ablation.

    OMP_NUM_THREADS=1 python tests/performance/bench_curriculum.py [SEEDS] [WORLD ...]

A simulated learner (mle_ideator/rl/simulation.py) in several worlds; `ratio` is executions of the
ablation / executions of `adaptive`, the median over the same seeds (10) with a 95 % interval: over
1, what the ablation leaves out saves executions. Runs that do not get there count with the budget.
At the end stands where the adaptive curriculum does not win.
"""

from __future__ import annotations

import sys
import time

from mle_ideator.rl.buffer.config import ablations
from mle_ideator.rl.simulation import Line, World, compare

WORLDS = {
    "base": World(),
    "no hopeless states": World(hopeless=0.0),
    "many hopeless states (60 %)": World(hopeless=0.6),
    "clean format": World(noisy=0.0),
    "noisy format (40 % of states)": World(noisy=0.4),
    "flaky runtime (20 % lost)": World(lost=0.2),
    "small groups (G = 4)": World(ideas=4, groups=16),
    "large groups (G = 16)": World(ideas=16, groups=4),
    "no transfer between tasks": World(transfer=0.0),
    "one task has 80 % of the states": World(first_task=0.8),
    "few states (60)": World(states=60),
    "many states (6,000)": World(states=6_000),
    # added after a look at the worlds above: docs/curriculum.md says why
    "far target (0.8)": World(target=0.8, budget=120_000),
    "slow learner, many hopeless": World(rate=0.02, hopeless=0.6, budget=150_000),
    "easy start (difficulty < 0)": World(hardest=0.0),
    "at the ceiling (target 0.9)": World(target=0.9, hopeless=0.4, budget=60_000),
    "nearly exhausted (5 % learnable)": World(hopeless=0.75, budget=60_000),
    "repetition teaches half": World(repetition=0.5),
}


def show(world: str, lines: list[Line], seconds: float) -> None:
    print(f"\n{world} ({seconds:.0f} s)")
    print(f"  {'curriculum':24}{'median':>8}  {'95 % interval':>17}  reached  signal  ratio")
    for line in lines:
        print(
            f"  {line.strategy:24}{line.median:8,.0f}  {line.low:7,.0f} … {line.high:7,.0f}"
            f"  {line.reached:7.0%}  {line.signal:6.0%}"
            f"  {line.ratio:.2f} [{line.ratio_low:.2f}, {line.ratio_high:.2f}]",
            flush=True,
        )


def main(seeds: int, worlds: list[str]) -> None:
    not_won = []
    for name in worlds:
        start = time.perf_counter()
        lines = compare(ablations(), WORLDS[name], range(seeds))
        show(name, lines, time.perf_counter() - start)
        not_won += [
            f"{name}: against {line.strategy}, ratio {line.ratio:.2f} "
            f"[{line.ratio_low:.2f}, {line.ratio_high:.2f}]: {line.verdict}"
            for line in lines[1:]
            if line.verdict != "first better"
        ]
    print("\nWhere adaptive does not win (`first` is adaptive):")
    print("\n".join(f"  {each}" for each in not_won) or "  nowhere")


if __name__ == "__main__":
    count, *named = sys.argv[1:] or ["10"]
    main(int(count), named or list(WORLDS))
