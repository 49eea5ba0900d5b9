"""Findings as files for programs: `evaluation.json`, `tries.csv`, `figures.csv`, `pairs.csv`.
docs/evaluation.md tells their columns."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from mle_ideator.benchmarks.measures.figures import Figure
from mle_ideator.benchmarks.reports.spreadsheet import Line, csv_of
from mle_ideator.files import replace_file
from mle_ideator.rl.evaluation.contenders import category_of
from mle_ideator.rl.evaluation.gains import gain_of
from mle_ideator.rl.evaluation.values import DEFINITIONS, Evaluation, Findings, PairRow, Try
from mle_ideator.rl.values import StateCard

TRY_COLUMNS = (
    "contender", "state", "task", "kind", "depth", "seed", "place", "drawn_seed", "outcome",
    "reward", "improved", "before", "after", "gain_percent", "category", "action", "seconds",
    "ideator_seconds", "input_tokens", "output_tokens", "cost_usd", "child", "detail",
)  # fmt: skip
FIGURE_COLUMNS = (
    "contender", "by", "group", "figure", "value", "low", "high", "n", "states", "tries", "masked",
    "invalid",
)  # fmt: skip
PAIR_COLUMNS = (
    "first", "second", "measure", "by", "group", "states", "left_out", "wins", "ties", "losses",
    "difference", "low", "high", "p_sign", "p_permutation", "p_holm",
)  # fmt: skip


def findings_json(findings: Findings) -> bytes:
    """Everything, with what each figure is; indented, with a newline at its end."""
    told = {"definitions": DEFINITIONS, **msgspec.structs.asdict(findings)}
    return msgspec.json.format(msgspec.json.encode(told), indent=2) + b"\n"


def write_files(evaluation: Evaluation, findings: Findings, folder: Path) -> tuple[Path, ...]:
    """Write all four into a folder; what stood there is replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = {
        "evaluation.json": findings_json(findings),
        "tries.csv": csv_of(TRY_COLUMNS, _tries(evaluation)),
        "figures.csv": csv_of(FIGURE_COLUMNS, _figures(findings)),
        "pairs.csv": csv_of(PAIR_COLUMNS, map(_pair, findings.pairs)),
    }
    for name, content in contents.items():
        replace_file(folder / name, content)
    return tuple(folder / name for name in contents)


def _tries(evaluation: Evaluation) -> list[Line]:
    cards = {card.id: card for card in evaluation.states}
    return [_try(one, cards[one.state]) for one in evaluation.tries]


def _try(one: Try, card: StateCard) -> Line:
    result = one.result
    return [
        one.contender, one.state, card.task, card.kind, card.depth, one.seed, one.place,
        result.seed, result.outcome, result.reward, result.improved,
        *(score.value if score else None for score in (result.before, result.after)),
        gain_of(one), category_of(one), result.idea.action if result.idea else None,
        result.seconds, one.ideator_seconds, one.usage.input_tokens, one.usage.output_tokens,
        one.usage.cost_usd, result.child, result.detail,
    ]  # fmt: skip


def _figures(findings: Findings) -> Iterable[Line]:
    for row in findings.rows:
        head = [row.contender, row.by, row.group]
        counts = [row.states, row.tries, row.masked, row.invalid]
        for figure in row.figures:
            yield [*head, figure.name, *_interval(figure), figure.n, *counts]


def _pair(pair: PairRow) -> Line:
    return [
        pair.first, pair.second, pair.measure, pair.by, pair.group, pair.states, pair.left_out,
        pair.wins, pair.ties, pair.losses, *_interval(pair.difference), pair.p_sign,
        pair.p_permutation, pair.p_holm,
    ]  # fmt: skip


def _interval(figure: Figure) -> tuple[float | None, ...]:
    return figure.value, figure.low, figure.high
