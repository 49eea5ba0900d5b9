"""What a person wants to know of a buffer: how it stands, what is drawn from it, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from mle_ideator.errors import UsageError
from mle_ideator.rl.buffer import curriculum as pure
from mle_ideator.rl.buffer.curriculum import Floats
from mle_ideator.rl.buffer.lottery import Lottery, lottery
from mle_ideator.rl.buffer.rows import DRAWABLE, FREE, KINDS, RESTING, RETIRED
from mle_ideator.types import Value

if TYPE_CHECKING:
    from mle_ideator.rl.buffer.buffer import EvolvingBuffer

Status = Literal["drawable", "resting", "retired"]
_STATUS: dict[int, Status] = {DRAWABLE: "drawable", RESTING: "resting", RETIRED: "retired"}


class TaskMetrics(Value, frozen=True, kw_only=True):
    """One task's part of the buffer."""

    states: int
    unseen: int
    """No idea was executed from them yet."""
    drawable: int
    resting: int
    retired: int
    draws: int
    """Of the states that are there."""
    mean_potential: float | None
    """Over those that are not retired; `None` without any."""
    share_of_draws: float
    """Expected of the next draw, 0 to 1."""


class BufferMetrics(Value, frozen=True, kw_only=True):
    """What one wants to see at every step."""

    states: int
    unseen: int
    drawable: int
    resting: int
    retired: int
    mean_potential: float | None
    draws: int
    top_fraction: float
    """Share of the drawable states that is drawn from now."""
    zero_variance_share: float | None
    """Of the last groups, how many had no variance among executed ideas: no signal."""
    invalid_share: float | None
    """Of all ideas that the runtime did not lose."""
    masked_share: float | None
    """Of all ideas, how many the runtime lost."""
    tallies: dict[str, int]
    """How often each thing happened: `added`, `merged`, `left_task_limit`, `drawn_again` …"""
    by_task: dict[str, TaskMetrics]


class Explanation(Value, frozen=True, kw_only=True):
    """Why a state would be drawn next, or not, in numbers."""

    id: str
    task: str
    kind: str
    depth: int
    status: Status
    draws: int
    groups: int
    executed: int
    invalid: int
    masked: int
    mean: float | None
    """μ of executed ideas, recent ones weighing more; `None` if unseen."""
    std: float | None
    potential: float
    spread_term: float
    headroom_term: float
    better: int
    """How many drawable states stand at a higher level of potential."""
    membership: float
    """How far it belongs to the candidates, 0 to 1."""
    task_share: float
    """Probability of its task."""
    probability: float
    """Of being the first of the next draw."""
    draws_until_back: int | None
    """If it rests or is retired: in how many draws that is over, at the latest; `None` if that
    needs `return_retired`."""
    text: str
    """The same in one sentence."""


def metrics(buffer: EvolvingBuffer) -> BufferMetrics:
    """The buffer as it stands."""
    tallies, recent = buffer.tallies, buffer.recent
    column = buffer.rows.column
    there = column("status") != FREE
    ideas = tallies["ideas"]
    unmasked = ideas - tallies["masked"]
    active = there & (column("status") != RETIRED)
    return BufferMetrics(
        states=len(buffer),
        unseen=int((there & (column("weight") == 0)).sum()),
        drawable=buffer.at[DRAWABLE],
        resting=buffer.at[RESTING],
        retired=buffer.at[RETIRED],
        mean_potential=float(column("potential")[active].mean()) if active.any() else None,
        draws=buffer.draws,
        top_fraction=pure.top_fraction(buffer.draws, buffer.config),
        zero_variance_share=1 - sum(recent) / len(recent) if recent else None,
        invalid_share=tallies["invalid"] / unmasked if unmasked else None,
        masked_share=tallies["masked"] / ideas if ideas else None,
        tallies=dict(tallies),
        by_task=_by_task(buffer),
    )


def _by_task(buffer: EvolvingBuffer) -> dict[str, TaskMetrics]:
    column = buffer.rows.column
    status, task, potential = column("status"), column("task"), column("potential")
    tasks, there = len(buffer.tasks), status != FREE
    active = there & (status != RETIRED)

    def sums(values: npt.NDArray[Any]) -> list[float]:
        found: list[float] = np.bincount(task, values, minlength=tasks).tolist()
        return found

    counts = np.bincount(task * 4 + status, minlength=4 * tasks).reshape(tasks, 4)
    unseen = np.bincount(task[there & (column("weight") == 0)], minlength=tasks)
    potentials, draws = sums(potential * active), sums(column("draws"))
    shares = _shares(_next(buffer)).tolist()
    return {
        name: TaskMetrics(
            states=int(counts[number, DRAWABLE:].sum()),
            unseen=int(unseen[number]),
            drawable=int(counts[number, DRAWABLE]),
            resting=int(counts[number, RESTING]),
            retired=int(counts[number, RETIRED]),
            draws=int(draws[number]),
            mean_potential=_mean(potentials[number], counts[number, [DRAWABLE, RESTING]].sum()),
            share_of_draws=shares[number],
        )
        for number, name in enumerate(buffer.tasks)
    }


def _mean(total: float, count: int) -> float | None:
    return float(total / count) if count else None


def _next(buffer: EvolvingBuffer) -> Lottery:
    return lottery(buffer.cells.drawable, 1, buffer.draws, buffer.config)


def _shares(tickets: Lottery) -> Floats:
    """Probability of each task; zeros where nothing is drawable."""
    total = tickets.weights.sum()
    return tickets.weights / total if total else tickets.weights


def distribution(buffer: EvolvingBuffer) -> Floats:
    """Of each row, the probability that its state is the first of the next draw.

    They sum to 1, but for an empty buffer. Where nothing is drawable, one state is certain.
    """
    rows, tickets = buffer.rows, _next(buffer)
    status = rows.column("status")
    probabilities = np.zeros(len(status))
    if not tickets.open:
        last_resort = buffer.next_spare()
        if last_resort is not None:
            probabilities[last_resort] = 1.0
        return probabilities
    drawable = np.flatnonzero(status == DRAWABLE)
    task, level = rows.column("task")[drawable], rows.column("bin")[drawable]
    each = _shares(tickets) / np.where(tickets.weights > 0, tickets.candidates, 1.0)
    probabilities[drawable] = each[task] * tickets.members[level]
    return probabilities


def explain(buffer: EvolvingBuffer, state: str) -> Explanation:
    """Raises `UsageError` if the state is not in the buffer."""
    row = buffer.rows.find(state)
    if row is None:
        raise UsageError(f"help state {state} is not in the buffer.")
    rows, config, tickets = buffer.rows, buffer.config, _next(buffer)
    now, status, task = rows.statistics(row), rows.status[row], rows.task[row]
    seen = now.weight > 0
    mean, std = (now.mean, now.std) if seen else (config.prior_mean, config.prior_std)
    level = pure.level(rows.potential[row], config)
    drawable = status == DRAWABLE
    share = float(_shares(tickets)[task])
    member = float(tickets.members[level]) if drawable else 0.0
    candidates = float(tickets.candidates[task])
    probability = share * member / candidates if member and candidates else 0.0
    if not tickets.open and buffer.next_spare() == row:
        probability = 1.0
    found = Explanation(
        id=state,
        task=buffer.tasks[task],
        kind=KINDS[rows.kind[row]],
        depth=rows.depth[row],
        status=_STATUS[status],
        draws=rows.draws[row],
        groups=rows.groups[row],
        executed=rows.executed[row],
        invalid=rows.invalid[row],
        masked=rows.masked[row],
        mean=now.mean if seen else None,
        std=now.std if seen else None,
        potential=rows.potential[row],
        spread_term=pure.spread_term(std, config),
        headroom_term=pure.headroom_term(mean, config),
        better=int(tickets.counts[:, level + 1 :].sum()),
        membership=member,
        task_share=share,
        probability=probability,
        draws_until_back=_until_back(buffer, row),
        text="",
    )
    return msgspec.structs.replace(found, text=_sentence(found, buffer))


def _until_back(buffer: EvolvingBuffer, row: int) -> int | None:
    left = buffer.rows.due[row] - buffer.draws
    never = left > pure.LONGEST_AWAY // 2
    return None if buffer.rows.status[row] == DRAWABLE or never else max(left, 0)


def _sentence(found: Explanation, buffer: EvolvingBuffer) -> str:
    """Why it would be drawn or not, in words."""
    if found.status != "drawable":
        row = buffer.rows.find(found.id)
        why = _why_retired(buffer, row) if row is not None else ""
        what = "it was drawn a moment ago and rests" if found.status == "resting" else why
        if found.draws_until_back is None:
            return f"not drawn: {what}, until all that are retired are brought back."
        return f"not drawn: {what}, for {found.draws_until_back} more draws at most."
    rank = f"{found.better} drawable states stand higher"
    if not found.membership:
        top = pure.top_fraction(buffer.draws, buffer.config)
        return f"not drawn: {rank}, and the top {top:.0%} are drawn from."
    source = "by the prior, no idea was executed yet" if found.mean is None else "by its rewards"
    return (
        f"drawn first with probability {found.probability:.2g}: "
        f"P = {found.potential:.2f} {source}; {rank}; "
        f"its task is drawn with probability {found.task_share:.2g}."
    )


def _why_retired(buffer: EvolvingBuffer, row: int) -> str:
    flat, silent = buffer.rows.flat[row], buffer.rows.silent[row]
    if silent >= abs(flat):
        return f"retired: of its last {silent} groups no idea was executed"
    ended = "every idea improved" if flat > 0 else "no idea improved"
    return f"retired: in its last {abs(flat)} groups {ended}"


def likely(buffer: EvolvingBuffer, count: int = 20) -> list[Explanation]:
    """The states that are most likely to be drawn next, then by potential: rows of a table."""
    there = np.fromiter(buffer.rows, np.int64, len(buffer))
    chances, potentials = distribution(buffer)[there], buffer.rows.column("potential")[there]
    order = np.lexsort((there, -potentials, -chances))[:count]
    return [explain(buffer, buffer.rows.id_of(row)) for row in there[order].tolist()]
