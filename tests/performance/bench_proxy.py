"""What the proxy reward predicts, saves and costs, on tasks that it has not seen.

    OMP_NUM_THREADS=1 python tests/performance/bench_proxy.py [--store states.db] [--runs FOLDER] …

Examples come from each store's cache, and its `tries.jsonl` given by `--tries STORE=FILE`; with
`--runs` from recorded sessions below a folder. `--out` keeps the proxy. Everything but the seconds
is out of fold by task (docs/proxy.md says what each figure is).
"""

from __future__ import annotations

import argparse
import time
from collections import Counter, defaultdict
from pathlib import Path
from statistics import fmean

import msgspec
import numpy as np

from mle_ideator.errors import UsageError
from mle_ideator.rl.files import files_of
from mle_ideator.rl.states import StateStore
from mle_ideator.rl.training.proxy import Example, Examples, Proxy, results_in, results_of
from mle_ideator.rl.training.proxy.features import of_idea, of_state
from mle_ideator.rl.training.proxy.quality import auc

AUDITS = (0.05, 0.1, 0.25)
DRAWS = 2000


def gathered(arguments: argparse.Namespace) -> list[Example]:
    examples = Examples()
    for path in arguments.store:
        with StateStore.that_is_there(path) as store:
            examples.add_results(results_in(files_of(path).cache), store.help_state)
    for pair in arguments.tries:
        path, _, file = pair.partition("=")
        with StateStore.that_is_there(Path(path)) as store:
            examples.add_results(results_of(Path(file)), store.help_state)
    for folder in arguments.runs:
        for journal in sorted(folder.rglob("journal.jsonl")):
            try:
                examples.add_session(journal.parent)
            except UsageError as error:
                examples.left_out[str(error)[:60]] += 1
    print(f"left out: {dict(examples.left_out)}")
    tasks = Counter(example.task for example in examples.found)
    print(f"examples by task: {dict(sorted(tasks.items()))}")
    return examples.found


def show_quality(proxy: Proxy, examples: list[Example]) -> None:
    quality = proxy.quality
    print(
        f"\n{quality.form}: {quality.examples} examples of {quality.tasks} tasks, "
        f"{quality.improved:.1%} improved\n"
        f"AUC {quality.auc:.3f} {_interval(proxy, examples)}, within a task "
        f"{quality.auc_within_tasks or float('nan'):.3f}; calibration error "
        f"{quality.calibration_error:.3f}"
    )
    rows = [of_idea(of_state(e.state), e.idea) for e in examples]
    gain = np.array([row["gain_best"] for row in rows])
    print(f"(AUC of the offline ideator's expected gain alone: {auc(gain, proxy.held_out[1]):.3f})")
    predicted, improved = proxy.held_out
    print("predicted → improved, in fifths:", end=" ")
    for part in np.array_split(np.argsort(predicted, kind="stable"), 5):
        print(f"{predicted[part].mean():.2f} → {improved[part].mean():.2f}", end="; ")
    print()


def _interval(proxy: Proxy, examples: list[Example]) -> str:
    """95 %, tasks drawn anew."""
    predicted, improved = proxy.held_out
    by_task = defaultdict(list)
    for place, example in enumerate(examples):
        by_task[example.task].append(place)
    random, found = np.random.default_rng(0), []
    for _ in range(300):
        tasks = random.choice(sorted(by_task), len(by_task))
        places = np.array([place for task in tasks for place in by_task[task]])
        if len(set(improved[places].tolist())) == 2:
            found.append(auc(predicted[places], improved[places]))
    low, high = np.quantile(found, [0.025, 0.975])
    return f"[{low:.3f}, {high:.3f}]"


def show_savings(proxy: Proxy) -> None:
    print("\nfalse skips  threshold  saved  of seconds  missed of skipped")
    for one in proxy.quality.skipping:
        seconds = "-" if one.saved_seconds is None else f"{one.saved_seconds:.1%}"
        print(
            f"{one.false_skip:11.0%}  {one.threshold:9.3f}  {one.saved:5.1%}  {seconds:>10}"
            f"  {one.missed:17.1%}"
        )
    print("\nbias of the mean reward (true mean; SD of the mean over audits)")
    predicted, improved = proxy.held_out
    true = improved.mean()
    for one in proxy.quality.skipping:
        skipped = predicted < one.threshold
        kept = np.where(skipped, 0.0, improved)
        unseen = f"no audit {kept.mean() - true:+.4f}"
        print(f"  false skips {one.false_skip:.0%}: true {true:.4f}, {unseen}")
        for share in AUDITS:
            weighted, plain = _audited(kept, improved, skipped, share)
            print(
                f"    audit {share:.0%}: saved {skipped.mean() * (1 - share):.1%}, weighted "
                f"{weighted.mean() - true:+.4f} (SD {weighted.std():.4f}), as they are "
                f"{plain.mean() - true:+.4f}"
            )


def _audited(
    kept: np.ndarray, improved: np.ndarray, skipped: np.ndarray, share: float
) -> tuple[np.ndarray, np.ndarray]:
    """Mean rewards of many audits, weighted and as they are."""
    drawn = np.random.default_rng(0).random((DRAWS, int(skipped.sum()))) < share
    earned = drawn @ improved[skipped].astype(float)
    return (kept.sum() + earned / share) / len(kept), (kept.sum() + earned) / len(kept)


def show_choice(proxy: Proxy, examples: list[Example]) -> None:
    """Among ideas that were executed from the same help state."""
    together = defaultdict(list)
    for place, example in enumerate(examples):
        together[msgspec.json.encode(example.state)].append(place)
    groups = [np.array(places) for places in together.values() if len(places) > 1]
    if not groups:
        return
    predicted, improved = proxy.held_out
    chosen = fmean(improved[places[np.argmax(predicted[places])]] for places in groups)
    drawn = fmean(improved[places].mean() for places in groups)
    best = fmean(improved[places].any() for places in groups)
    mean = fmean(map(len, groups))
    print(
        f"\nof {mean:.1f} ideas to a help state ({len(groups)} states) one that improves is taken: "
        f"by the proxy {chosen:.1%}, at random {drawn:.1%}, at best {best:.1%}"
    )


def show_seconds(proxy: Proxy, examples: list[Example], fitting_s: float) -> None:
    some = examples[:100]
    start = time.perf_counter()
    for example in some:
        proxy.predict(example.state, [example.idea])
    took = (time.perf_counter() - start) / len(some)
    known = [example.seconds for example in examples if example.seconds]
    executing = f"{fmean(known):.1f} s" if known else "unknown"
    print(
        f"\nfitting {fitting_s:.1f} s; a prediction from a new help state {1000 * took:.1f} ms; "
        f"an execution {executing}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", type=Path, action="append", default=[])
    parser.add_argument("--tries", action="append", default=[], metavar="STORE=FILE")
    parser.add_argument("--runs", type=Path, action="append", default=[])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    examples = gathered(arguments)
    start = time.perf_counter()
    proxy = Proxy.fit(examples)
    fitting_s = time.perf_counter() - start
    show_quality(proxy, examples)
    show_savings(proxy)
    show_choice(proxy, examples)
    show_seconds(proxy, examples, fitting_s)
    if arguments.out:
        proxy.save(arguments.out)


if __name__ == "__main__":
    main()
