"""The loop: an implementer acts on a task, an ideator is asked, solutions are judged.

`run_session` is the only loop. It reads nothing of agents but their answers and remembers nothing
that is not in the journal.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TypeVar

import msgspec

from mle_ideator import __version__
from mle_ideator import journal as log
from mle_ideator.errors import AgentError, AgentTimeout, MleIdeatorError, OutOfBudget
from mle_ideator.handover import hand_over
from mle_ideator.help_policy import due, help_policy
from mle_ideator.journal import Journal
from mle_ideator.limits import Clock, used_up
from mle_ideator.prompts import render
from mle_ideator.setups import Setup
from mle_ideator.solutions import Solutions, Workspace, beats, kept_workspace
from mle_ideator.types import (
    UNKNOWN_USAGE,
    Decision,
    Execute,
    Execution,
    Finish,
    Grade,
    HelpState,
    Idea,
    Malformed,
    Observation,
    Outcome,
    Proposal,
    Remaining,
    SeekHelp,
    Situation,
    Solution,
    Step,
    Usage,
    Value,
)
from mle_ideator.waiting import finish

T = TypeVar("T", bound=Value)

_SHARE_FOR_AN_IDEA = 0.5
"""Of the time that is left: an ideator that hangs must not take the whole session."""


@dataclass(frozen=True, kw_only=True)
class Past:
    """What went before, in a session that is gone on with."""

    trajectory: tuple[Step, ...]
    solutions: tuple[Solution, ...]
    best: Solution | None
    help_requests: int
    spent: Usage
    elapsed_s: float


async def run_session(setup: Setup, journal: Journal, past: Past | None = None) -> log.Ended:
    """Run one session to its end, and its final solution once more in a clean sandbox.

    With a past it goes on where that was broken off, in the same folder.

    Raises `RuntimeFailure` if the runtime broke, and `CancelledError` if it was cancelled; the
    journal then ends with the outcome all the same, and what was solved is kept.
    """
    loop = _Loop(setup, journal, Clock(setup.config.limits))
    if past:
        loop.go_on_after(past)
    try:
        outcome = await loop.run()
        final = loop.best
        if setup.hands_over:
            final = await hand_over(setup, journal, loop.clock, loop.solutions)
        return loop.end(outcome, final)
    except asyncio.CancelledError:
        loop.end("interrupted", loop.best)
        raise
    except Exception as error:
        loop.end("failed", loop.best, str(error) or type(error).__name__)
        raise


@dataclass
class _Loop:
    setup: Setup
    journal: Journal
    clock: Clock
    trajectory: list[Step] = field(default_factory=list)
    solutions: list[Solution] = field(default_factory=list)
    best: Solution | None = None
    help_requests: int = 0
    spent: Usage = Usage()
    unpriced: set[str] = field(default_factory=set)
    resumes: bool = False

    async def run(self) -> Outcome:
        folder = self.setup.folder / "workspace"
        self.sandbox = self.setup.open_sandbox(folder, snapshot=self.setup.snapshot)
        self.help_policy = help_policy(self.setup.config.help_policy)
        self._begin()
        async with self.sandbox:
            self.workspace = Workspace(folder)
            self.store = Solutions(
                self.setup.folder / "solutions", self.setup.grader, self.setup.task.metric
            )
            while not self._finished:
                remaining = self._what_is_left()
                if outcome := used_up(remaining):
                    return outcome
                try:
                    await self._step(remaining)
                except (AgentTimeout, OutOfBudget) as error:
                    self._warn(str(error))
                    return "cost" if isinstance(error, OutOfBudget) else "time"
        return "finished"

    async def _step(self, remaining: Remaining) -> None:
        situation = self._situation(remaining)
        decision = await self._decide(situation)
        self._spend(decision.usage, "implementer")
        number = len(self.trajectory) + 1
        self.journal.append(log.Decided(at_s=self.clock.elapsed_s, step=number, decision=decision))
        idea, solution, usage = None, None, Usage()
        match decision.action:
            case Execute() as action:
                observation, solution = await self._execute(action, number)
            case SeekHelp(request=request):
                state = HelpState(self._situation(self._what_is_left()), request)
                observation, idea, usage = await self._seek_help(state, number)
            case Malformed(reason=reason):
                observation = Observation(text=render("session/malformed", reason=reason))
            case Finish():
                observation = Observation(text="[runtime] The session ends here.")
        if decision.ignored:
            note = render("session/ignored", ignored=decision.ignored)
            observation = _with_note(observation, note)
        step = Step(
            number=number,
            action=decision.action,
            thought=decision.thought,
            observation=observation,
            idea=idea,
            solution=solution,
        )
        self.trajectory.append(step)
        self.journal.append(log.Stepped(at_s=self.clock.elapsed_s, step=step, ideator_usage=usage))

    @property
    def _finished(self) -> bool:
        return bool(self.trajectory) and isinstance(self.trajectory[-1].action, Finish)

    async def _decide(self, situation: Situation) -> Decision:
        """The implementer's decision, unless it is time to seek help on its behalf."""
        if request := due(self.help_policy, situation):
            return Decision(request)
        try:
            answer = self.setup.implementer.act(situation)
            seconds = situation.remaining.seconds
            return await self._answer(Decision, "implementer", seconds, answer)
        except AgentError as error:
            if error.usage:
                usage = self._spend(error.usage, "implementer")
                self.journal.append(log.Spent(at_s=self.clock.elapsed_s, usage=usage))
            raise

    # ------------------------------------------------------------------------------ actions

    async def _execute(self, action: Execute, number: int) -> tuple[Observation, int | None]:
        # Asked anew: the implementer may have thought for long.
        execution = await self.sandbox.execute(action, self._what_is_left().step_seconds)
        solution, grade = None, None
        if self.workspace.submission_written():
            # An interrupt must not lose a solution that is being graded.
            solution, grade = await finish(self._judge(number, execution))
        text = render(
            "session/observation",
            execution=execution,
            solution=solution and solution.as_agents_see_it(self.setup.task),
            grade=grade,
            best=_number(self.best),
        )
        observation = Observation(
            text=text,
            status=execution.status,
            duration_s=execution.duration_s,
            dropped_chars=execution.dropped_chars,
            limits_hit=execution.limits_hit,
        )
        return observation, _number(solution)

    async def _judge(self, number: int, execution: Execution) -> tuple[Solution | None, Grade]:
        """Grade what a step wrote: a solution, or what is wrong with it."""
        solution, grade = await asyncio.to_thread(
            self.store.capture, self.workspace, len(self.solutions) + 1, number, execution.text
        )
        if solution:
            self.clock.solution_took(execution.duration_s)
            self._accept(solution, tuple(remark.message for remark in grade.remarks))
        else:
            self.journal.append(log.Rejected(at_s=self.clock.elapsed_s, step=number, grade=grade))
        return solution, grade

    def _accept(self, solution: Solution, remarks: tuple[str, ...]) -> None:
        config, task = self.setup.config, self.setup.task
        self.solutions.append(solution)
        is_best = beats(solution, self.best, config.selection, task.min_delta)
        if is_best:
            self.best = solution
        self.journal.append(
            log.Solved(at_s=self.clock.elapsed_s, solution=solution, remarks=remarks, best=is_best)
        )

    async def _seek_help(
        self, state: HelpState, number: int
    ) -> tuple[Observation, Idea | None, Usage]:
        remaining = state.situation.remaining
        if remaining.help_requests <= 0:
            return _unadvised("no help requests are left"), None, Usage()
        self.help_requests += 1
        if self.setup.config.keep_help_states:
            await self._keep_workspace(number)
        self.journal.append(
            log.Asked(
                at_s=self.clock.elapsed_s,
                step=number,
                request=state.request,
                code=state.situation.code,
                remaining=remaining,
            )
        )
        seconds = remaining.seconds * _SHARE_FOR_AN_IDEA
        try:
            answer = self.setup.ideator.propose(state)
            proposal = await self._answer(Proposal, "ideator", seconds, answer)
        except OutOfBudget as error:
            self._warn(str(error))
            told = _unadvised("the money that is left does not pay for an idea")
            return told, None, self._spend(error.usage or Usage(), "ideator")
        except AgentError as error:
            self._warn(f"the ideator failed, the session goes on without help: {error}")
            late = isinstance(error, AgentTimeout)
            told = _unadvised(f"the ideator {'took too long' if late else 'can not be reached'}")
            return told, None, self._spend(error.usage or UNKNOWN_USAGE, "ideator")
        usage = self._spend(proposal.usage, "ideator")
        return self._told(proposal), proposal.idea, usage

    async def _keep_workspace(self, number: int) -> None:
        kept = kept_workspace(self.setup.folder, number)
        if kept.exists():  # the step was broken off and is done anew
            await asyncio.to_thread(shutil.rmtree, kept)
        kept.parent.mkdir(exist_ok=True)
        with self.workspace.touched_by_the_runtime():
            await self.sandbox.snapshot(kept)

    def _told(self, proposal: Proposal) -> Observation:
        idea = proposal.idea
        if idea is None:
            return _unadvised(
                proposal.reason, "malformed_idea" if proposal.malformed else "no_idea"
            )
        problem = "" if idea.reverts_to is None else self._restore(idea.reverts_to)
        return Observation(text=render("session/idea", idea=idea, problem=problem), status="idea")

    def _restore(self, number: int) -> str:
        """Put a solution back; why that can not be done, or nothing."""
        solution = next((s for s in self.solutions if s.number == number), None)
        if solution is None:
            return f"There is no solution #{number}"
        try:
            self.workspace.restore(solution.code)
        except OSError as error:
            return f"solution.py can not be written ({error.strerror})"
        return ""

    async def _answer(self, kind: type[T], agent: str, seconds: float, answer: Awaitable[T]) -> T:
        """An agent's answer, as it will be read back. Raises `AgentError`."""
        try:
            async with asyncio.timeout(seconds) as deadline:
                answered = await answer
            if not isinstance(answered, kind):
                raise TypeError(f"answered with {type(answered).__name__}, not {kind.__name__}")
            return log.writable(answered)
        except MleIdeatorError:
            raise
        except Exception as error:
            if deadline.expired():
                raise _timeout(agent, seconds, error.__cause__) from error
            raise AgentError(f"the {agent} broke: {type(error).__name__}: {error}") from error

    def _spend(self, usage: Usage, agent: str) -> Usage:
        limits = self.setup.config.limits
        if limits.cost_usd is not None and usage.at_most_usd is None and agent not in self.unpriced:
            self.unpriced.add(agent)
            self._warn(f"what the {agent}'s calls cost is unknown; the cap does not cover them")
        self.spent += usage.known
        return usage

    def _what_is_left(self) -> Remaining:
        return self.clock.remaining(len(self.trajectory), self.help_requests, self.spent)

    # --------------------------------------------------------------------------- start, end

    def go_on_after(self, past: Past) -> None:
        self.resumes = True
        self.trajectory = [*past.trajectory[:-1], *map(broken_off, past.trajectory[-1:])]
        self.solutions = list(past.solutions)
        self.best = past.best
        # one for which nothing was left is a step, too
        self.help_requests = min(past.help_requests, self.setup.config.limits.help_requests)
        self.spent = past.spent
        self.clock = Clock(self.setup.config.limits, elapsed_s=past.elapsed_s)
        for step in past.trajectory:
            if step.solution is not None:
                self.clock.solution_took(step.observation.duration_s)

    def _begin(self) -> None:
        now, sandbox = datetime.now(UTC).isoformat(timespec="seconds"), self.sandbox.info
        if self.resumes:
            at_s = self.clock.elapsed_s
            self.journal.append(log.Resumed(at_s=at_s, resumed_at=now, sandbox=sandbox))
        else:
            self.journal.append(
                log.Started(
                    version=__version__,
                    started_at=now,
                    config=msgspec.to_builtins(self.setup.config),
                    task=self.setup.task,
                    sandbox=sandbox,
                )
            )
        for remark in self.setup.remarks:
            self._warn(remark)

    def _situation(self, remaining: Remaining) -> Situation:
        task = self.setup.task
        return Situation(
            task=task.as_agents_see_it(),
            trajectory=tuple(self.trajectory),
            solutions=tuple(solution.as_agents_see_it(task) for solution in self.solutions),
            best=_number(self.best),
            code=self.workspace.code,
            remaining=remaining,
            sandbox=self.sandbox.info,
            seed=self.setup.config.seed,
        )

    def end(self, outcome: Outcome, final: Solution | None, detail: str = "") -> log.Ended:
        ended = log.Ended(
            at_s=self.clock.elapsed_s,
            outcome=outcome,
            solution=_number(final),
            detail=detail,
        )
        self.journal.append(ended)
        return ended

    def _warn(self, message: str) -> None:
        self.journal.append(log.Warned(at_s=self.clock.elapsed_s, message=message))


def _unadvised(
    reason: str, status: Literal["no_idea", "malformed_idea", "told"] = "told"
) -> Observation:
    """Whether an ideator gave no idea, or could not be asked, is told apart by the status."""
    return Observation(text=render("session/no_idea", reason=reason), status=status)


def _timeout(agent: str, seconds: float, cancelled: BaseException | None) -> AgentTimeout:
    """With what a model said of the call that was broken off."""
    detail = getattr(cancelled, "detail", "")
    error = AgentTimeout(
        f"the {agent} did not answer within {seconds:.0f} s{f' ({detail})' if detail else ''}"
    )
    error.usage = getattr(cancelled, "usage", None)
    return error


def broken_off(step: Step) -> Step:
    """The last step before a session was broken off, as the implementer sees it afterwards.

    Broken off once more before another step, it is told once.
    """
    note = render("session/resumed")
    if step.observation.text.endswith(note):
        return step
    return msgspec.structs.replace(step, observation=_with_note(step.observation, note))


def _with_note(observation: Observation, note: str) -> Observation:
    return msgspec.structs.replace(observation, text=f"{observation.text}\n{note}")


def _number(solution: Solution | None) -> int | None:
    return solution.number if solution else None
