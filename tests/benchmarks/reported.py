"""Reports of runs that were measured by hand, and what a page of HTML is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path

import msgspec

from mle_ideator import __version__
from mle_ideator.benchmarks.measures.values import Flag, RunMeasures, TriedIdea
from mle_ideator.benchmarks.reports.gathering import ResultsOf, report_of
from mle_ideator.benchmarks.reports.values import Report
from mle_ideator.benchmarks.runner.plan import Plan
from mle_ideator.types import Metric, Score, Scores
from tests.benchmarks.measured import moment, run

FLAG = Flag(code="network", line=7, message="opens a connection")
TASKS = tuple(f"task-{letter}" for letter in "abcdefgh")
VOID = {"meta", "link", "br", "img", "input", "hr", "path", "use", "rect"}


def solved(task: str, ideator: str, seed: int, rank: float, **known: object) -> RunMeasures:
    """A valid run: a solution at step 2, a better one at step 4; one of two ideas improved."""
    values = {
        "scores": Scores(validation=Score(rank, True), private=Score(rank, True)),
        "medal": "gold" if rank > 0.9 else None,
        "above_median": rank > 0.5,
        "history": (moment(2, rank / 2, rank / 2), moment(4, rank, rank)),
        "steps_to_first_valid": 2,
        "seconds_to_first_valid": 20.0,
        "ideas": (
            TriedIdea(step=3, categories=("ensembling",), improved=True),
            TriedIdea(step=5, categories=("training",), improved=False),
        ),
        "help_requests": 2,
        "improvements": 1,
        "metric": Metric("auc", higher_is_better=True),
        "title": f"Title of {task}",
        "baseline": Scores(private=Score(0.1, True)),
    }
    return run(task, ideator, seed, rank, **{**values, **known})


def matrix(
    ranks: dict[str, float], tasks: Iterable[str] = TASKS, seeds: int = 2
) -> list[RunMeasures]:
    """Every ideator with its HumanRank on every task, a little better with every seed."""
    return [
        solved(task, ideator, seed, rank + 0.01 * seed)
        for task in tasks
        for ideator, rank in ranks.items()
        for seed in range(seeds)
    ]


def plan(tasks: Iterable[str], ideators: Iterable[str], seeds: int) -> Plan:
    return Plan(
        version=__version__,
        suite="own",
        tasks=tuple(tasks),
        ideators=tuple(ideators),
        implementers=("offline",),
        seeds=tuple(range(seeds)),
        config={},
    )


def report(runs: list[RunMeasures], asked: Plan | None = None, root: Path = Path("R")) -> Report:
    return report_of([ResultsOf(label="R", path=root, plan=asked, runs=runs)])


def flagged(measures: RunMeasures) -> RunMeasures:
    return msgspec.structs.replace(measures, flags=(FLAG,))


class Page(HTMLParser):
    """A page's elements; raises `AssertionError` where tags do not match."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        """Tag, attribute, value."""
        self.text = ""
        self.feed(file.read_text(encoding="utf-8"))
        assert not self.open, f"{self.open} are not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open, f"</{tag}> closes nothing"
            assert self.open.pop() == tag, f"</{tag}> does not match"

    def handle_data(self, data: str) -> None:
        self.text += data

    def values(self, name: str) -> list[str]:
        return [value for _, attribute, value in self.attributes if attribute == name]


def assert_self_contained(page: Page) -> None:
    """Nothing is loaded, nothing runs; ids are unique, and links within the page lead somewhere."""
    assert not set(page.tags) & {"script", "iframe", "object", "embed", "link", "img", "base"}
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    for target in [*page.values("href"), *page.values("src")]:
        assert ":" not in target.split("/")[0], target
        if target.startswith("#"):
            assert target[1:] in ids
