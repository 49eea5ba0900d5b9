"""Does training help on held-out tasks? Runs with several seeds, and the paired evaluation of all.

    OMP_NUM_THREADS=1 python tests/performance/bench_learning.py FOLDER --states train.db \
        --held-out held_out.db [--preset tiny] [--seeds 3] [--steps 60] [--limit 100] [--set K=V …]

Four arms, of each seed: `form` and `worked`, warm-ups on random ideas (all of them, or those that
improved the score when they were executed), and `form + RL`, `worked + RL`, trained from there.
All are asked about the same help states of tasks that none of them saw. Each command is printed,
and not run again if it is done; the same call goes on.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec

from mle_ideator.rl.evaluation import Evaluation, findings_of
from mle_ideator.rl.evaluation.tables import tables_of
from mle_ideator.rl.evaluation.values import Try
from mle_ideator.rl.states import StateStore
from mle_ideator.rl.training.logs.lines import metrics_of

WARM_UPS = {"form": "all", "worked": "worked"}
RIVALS = ("offline", "random", "null")


def call(*arguments: str) -> None:
    print(f"\n$ mle-ideator {shlex.join(arguments)}", flush=True)
    subprocess.run([sys.executable, "-m", "mle_ideator", *arguments], check=True)


def train(asked: argparse.Namespace, kind: str, seed: int) -> Path:
    """The folder of one run, trained to its end."""
    run = asked.folder / f"{kind}-{seed}"
    if not (run / "config.yaml").exists():
        settings = [f"warm_up.which={WARM_UPS[kind]}", *asked.set]
        call(
            *("train", "--preset", asked.preset, "--states", str(asked.states)),
            *("--seed", str(seed), "--steps", str(asked.steps), "--out", str(run)),
            *(part for setting in settings for part in ("--set", setting)),
        )
    elif not (run / "metrics.jsonl").exists() or len(metrics_of(run)) < asked.steps:
        call("train", "--resume", str(run))
    return run


def arms(asked: argparse.Namespace) -> dict[str, tuple[str, int]]:
    """By the ideator's name: its arm, and its seed."""
    found = {}
    for seed in range(asked.seeds):
        for kind in WARM_UPS:
            run = train(asked, kind, seed)
            found[f"hf:{run / 'warm_up'}"] = (kind, seed)
            found[f"hf:{run / 'checkpoint'}"] = (f"{kind} + RL", seed)
    return found


def evaluated(asked: argparse.Namespace, found: dict[str, tuple[str, int]]) -> Evaluation:
    """The tries of all, those of an arm's seeds as answers of one contender."""
    out = asked.folder / "evaluation"
    named = [part for name in (*found, *RIVALS) for part in ("--ideator", name)]
    call(
        *("evaluate", "--states", str(asked.held_out), "--limit", str(asked.limit)),
        *("--workers", "2", "--out", str(out), *named),
    )
    lines = (out / "tries.jsonl").read_bytes().splitlines()[1:]
    tries = [
        msgspec.structs.replace(one, contender=arm, place=place)
        for one in (msgspec.json.decode(line, type=Try) for line in lines)
        for arm, place in places(one.contender, found, asked.seeds)
    ]
    there = {one.state for one in tries}
    with StateStore.that_is_there(asked.held_out) as store:
        cards = tuple(card for card in store.cards() if card.id in there)
    names = tuple(dict.fromkeys(one.contender for one in tries))
    return Evaluation(contenders=names, states=cards, ideas=asked.seeds, seed=0, tries=tuple(tries))


def places(name: str, found: dict[str, tuple[str, int]], seeds: int) -> list[tuple[str, int]]:
    """Where a try counts: with its seed's number; a rival's stands beside each of them."""
    return [found[name]] if name in found else [(name, seed) for seed in range(seeds)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--states", type=Path, required=True)
    parser.add_argument("--held-out", type=Path, required=True)
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--set", action="append", default=[])
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    evaluation = evaluated(asked, arms(asked))

    from mle_ideator.cli.report_view import report_console, show_tables

    show_tables(tables_of(findings_of(evaluation)), report_console())


if __name__ == "__main__":
    main()
