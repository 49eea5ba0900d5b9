"""The loop, with real kernels: what is credited, what is refused, how it ends."""

import asyncio
import json
import os
import time

import msgspec
import pytest

from mle_ideator.errors import AgentError, GradingError, OutOfBudget
from mle_ideator.ideators.null import NullIdeator
from mle_ideator.journal import FILE, Asked, Journal, read_journal
from mle_ideator.limits import Limits
from mle_ideator.results import record_of, write_results
from mle_ideator.types import (
    UNKNOWN_USAGE,
    Decision,
    Execute,
    Finish,
    HelpRequest,
    Idea,
    Malformed,
    Proposal,
    SeekHelp,
    Usage,
)
from tests.conftest import SOLUTION, writes_and_runs

HELP = SeekHelp(HelpRequest("stuck", "two attempts", "a better score"))


class Plays:
    """An implementer that plays actions and keeps the situations it saw."""

    def __init__(self, *actions):
        self.actions = actions
        self.saw = []

    async def act(self, situation):
        self.saw.append(situation)
        number = len(situation.trajectory)
        action = self.actions[number] if number < len(self.actions) else Finish("done")
        return Decision(Execute("python", action) if isinstance(action, str) else action)


class Says:
    """An ideator that answers with what it was made with, raising exceptions."""

    def __init__(self, answer):
        self.answer = answer

    async def propose(self, state):
        if isinstance(self.answer, BaseException):
            raise self.answer
        return Proposal(self.answer)


NO_HELP = NullIdeator()


async def test_a_solution_is_graded_kept_and_run_again(play, folder_of_run):
    record = await play(Plays(writes_and_runs(1), writes_and_runs(1.9)), NO_HELP)
    assert [s.step for s in record.solutions] == [1, 2]
    assert [s.scores.validation.value for s in record.solutions] == pytest.approx([1, 0.1])
    assert record.bests == (1, 2)
    assert record.final.number == 2
    assert record.ended.outcome == "finished"
    assert record.reproduced.scores.public == record.final.scores.public
    summary = write_results(folder_of_run, record)
    assert summary.best.solution == str(folder_of_run / "solution.py")
    assert "* 1.9" in (folder_of_run / "solution.py").read_text()
    assert (folder_of_run / "submission.csv").read_text().startswith("id,y\nb0,0.0\nb1,1.9\n")
    assert json.loads((folder_of_run / "summary.json").read_text())["outcome"] == "finished"


async def test_a_worse_solution_does_not_become_final(play):
    record = await play(Plays(writes_and_runs(2), writes_and_runs(5)), NO_HELP)
    assert record.bests == (1,)
    assert record.final.number == 1


async def test_a_stale_submission_is_never_credited_to_a_later_step(play):
    actions = Plays(writes_and_runs(1), "print('Validation score: 0.0')", "1 / 0")
    record = await play(actions, NO_HELP)
    assert [step.solution for step in record.steps] == [1, None, None, None]
    assert len(record.solutions) == 1


async def test_the_same_submission_written_again_is_a_new_solution(play):
    record = await play(Plays(writes_and_runs(1), writes_and_runs(1)), NO_HELP)
    assert [s.step for s in record.solutions] == [1, 2]
    assert record.bests == (1,)


async def test_agents_never_see_the_private_score(play):
    agent = Plays(writes_and_runs(1))
    record = await play(agent, NO_HELP)
    assert record.solutions[0].scores.private is not None
    assert agent.saw[-1].solutions[0].scores.private is None
    assert agent.saw[-1].solutions[0].scores.public is not None
    assert agent.saw[-1].task.baseline.private is None
    private = str(record.solutions[0].scores.private)
    assert all(private not in step.observation.text for step in record.steps)


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ("open('submission.csv', 'w').write('id,y\\nb0,1\\n')", "no_solution"),
        (
            "open('solution.py', 'w').write('1')\n"
            "open('submission.csv', 'w').write('id,y\\nb0,1\\n')",
            "missing_ids",
        ),
        ("import os; open('solution.py', 'w').write('1'); os.mkdir('submission.csv')", None),
        ("import os; open('solution.py', 'w').write('1'); os.mkfifo('submission.csv')", None),
        (
            "import os; open('solution.py','w').write('1'); "
            "os.symlink('input/sample_submission.csv', 'submission.csv')",
            None,
        ),
    ],
)
async def test_a_wrong_submission_is_told_and_is_no_solution(play, folder_of_run, cell, code):
    record = await play(Plays(cell), NO_HELP)
    assert record.solutions == ()
    text = record.steps[0].observation.text
    assert "submission.csv was not accepted" in text
    assert code is None or f"({code})" in text
    assert write_results(folder_of_run, record).best.solution is None


async def test_an_idea_is_told_and_a_new_best_after_it_is_an_improvement(play):
    idea = Idea("Refine: x is doubled.", "Multiply by two.", "It fits.")
    actions = Plays(writes_and_runs(1), HELP, writes_and_runs(2), writes_and_runs(2.1), HELP)
    record = await play(actions, Says(idea))
    assert record.steps[1].idea == idea
    assert "<action>Multiply by two.</action>" in record.steps[1].observation.text
    assert len(record.improved) == 1


async def test_revert_restores_the_solution_before_the_implementer_goes_on(play):
    agent = Plays(writes_and_runs(2), writes_and_runs(5), HELP)
    record = await play(agent, Says(Idea("Revert to #1: it was right.", "Stop.", "Why not.")))
    assert "* 2" in agent.saw[3].code
    assert "restored to solution #1" in record.steps[2].observation.text
    assert len(record.solutions) == 2  # restoring is not solving


@pytest.mark.parametrize(
    "trap",
    [
        "import os; os.remove('solution.py'); os.makedirs('solution.py/full')",
        "import os; os.remove('solution.py'); os.symlink('/dev/null', 'solution.py')",
        "import os; os.mkdir('.solution.py.part')",
    ],
)
async def test_no_trap_in_the_workspace_keeps_a_solution_from_being_restored(play, trap):
    agent = Plays(writes_and_runs(2), trap, HELP)
    await play(agent, Says(Idea("Revert to #1: it was right.", "Stop.", "Why not.")))
    assert "* 2" in agent.saw[3].code


async def test_lone_surrogates_from_an_agent_harm_nothing(play):
    idea = Idea("Refine \ud800", "Do \udfff.", "Why.")
    actions = Plays("print('x\ud800y')", SeekHelp(HelpRequest("\ud800", "a", "g")))
    record = await play(actions, Says(idea))
    assert record.ended.outcome == "finished"
    assert record.steps[0].observation.text == "x?y"
    assert record.steps[1].idea.action == "Do ?."


async def test_a_huge_submission_is_refused_unread(play):
    cell = "open('solution.py', 'w').write('1'); open('submission.csv', 'w').truncate(9 * 10**9)"
    record = await play(Plays(cell), NO_HELP)
    assert "(too_large)" in record.steps[0].observation.text


async def test_an_interrupt_while_grading_loses_no_solution(play, folder_of_run, tiny_task):
    class Slow:
        max_bytes = 1_000_000

        def grade(self, submission):
            session.cancel()
            time.sleep(0.5)
            return tiny_task[1].grade(submission)

    session = asyncio.create_task(play(Plays(writes_and_runs(2)), NO_HELP, grader=Slow()))
    with pytest.raises(asyncio.CancelledError):
        await session
    record = record_of(read_journal(folder_of_run))
    assert (record.ended.outcome, record.final.number) == ("interrupted", 1)


async def test_reverting_to_what_is_not_there_is_said(play):
    record = await play(Plays(HELP), Says(Idea("Revert to #9: yes.", "Go.", "Why.")))
    assert "There is no solution #9" in record.steps[0].observation.text


@pytest.mark.parametrize("error", [AgentError("lost server"), ValueError("a bug")])
async def test_a_broken_ideator_is_no_end(play, error):
    record = await play(Plays(HELP, writes_and_runs(2)), Says(error))
    assert record.steps[0].observation.status == "told"
    assert "No idea came" in record.steps[0].observation.text
    assert "goes on without help" in record.warnings[0]
    assert record.final.number == 1


async def test_an_answer_without_a_well_formed_idea_is_told_apart_from_none(play):
    class Babbles:
        async def propose(self, state):
            return Proposal(None, "the analysis is missing", malformed=True)

    record = await play(Plays(HELP), Babbles())
    assert record.steps[0].observation.status == "malformed_idea"
    assert "the analysis is missing" in record.steps[0].observation.text
    record = await play(Plays(HELP), NO_HELP, folder="again")
    assert record.steps[0].observation.status == "no_idea"


async def test_help_requests_are_bounded(play):
    idea = Idea("Refine", "Do.", "Why.")
    record = await play(Plays(HELP, HELP), Says(idea), limits=Limits(help_requests=1))
    assert [step.observation.status for step in record.steps[:2]] == ["idea", "told"]


async def test_steps_are_bounded_and_an_unreadable_reply_costs_one(play):
    actions = Plays(Malformed("an unterminated fence"), "1", "2", "3")
    record = await play(actions, NO_HELP, limits=Limits(steps=3))
    assert record.ended.outcome == "steps"
    assert len(record.steps) == 3
    assert "an unterminated fence" in record.steps[0].observation.text


async def test_time_is_bounded_for_cells_and_for_agents(play):
    limits = Limits(time_s=4, step_time_s=1)
    record = await play(Plays(*["import time; time.sleep(60)"] * 9), NO_HELP, limits=limits)
    assert record.ended.outcome == "time"
    assert record.steps[0].observation.status == "timeout"
    assert record.at_s < 15


async def test_an_agent_that_does_not_answer_ends_with_the_time(play):
    class Sleeps:
        async def act(self, situation):
            await asyncio.sleep(60)

    record = await play(Sleeps(), NO_HELP, limits=Limits(time_s=2))
    assert record.ended.outcome == "time"


async def test_a_broken_implementer_fails_the_session_and_keeps_what_was_solved(
    play, folder_of_run
):
    class Breaks(Plays):
        async def act(self, situation):
            if situation.trajectory:
                raise ZeroDivisionError("a bug")
            return await super().act(situation)

    with pytest.raises(AgentError, match="the implementer broke: ZeroDivisionError"):
        await play(Breaks(writes_and_runs(2)), NO_HELP)
    record = record_of(read_journal(folder_of_run))
    assert record.ended.outcome == "failed"
    assert write_results(folder_of_run, record).best.solution is not None


async def test_a_broken_grader_is_an_error_not_a_bad_submission(play):
    class Breaks:
        max_bytes = 1000

        def grade(self, submission):
            raise GradingError("the answers are gone")

    with pytest.raises(GradingError):
        await play(Plays(writes_and_runs(2)), NO_HELP, grader=Breaks())


async def test_a_solution_that_does_not_run_alone_gives_way_to_one_that_does(play):
    cheats = writes_and_runs(1.99) + "\nopen('solution.py', 'w').write('1 / 0')"
    record = await play(Plays(writes_and_runs(1.9), cheats), NO_HELP)
    assert [(r.solution, r.reproduced) for r in record.reruns] == [(2, False), (1, True)]
    assert record.final.number == 1
    assert "ZeroDivisionError" in record.reruns[0].detail


async def test_credit_for_what_solution_py_does_not_produce_does_not_last(play):
    """A good submission is touched, its solution replaced, and a wonderful score printed."""
    fakes = (
        f"open('solution.py', 'w').write({SOLUTION.replace('FACTOR', '7')!r})\n"
        "import os; os.utime('submission.csv')\n"
        "print('Validation score: 0.0001')"
    )
    record = await play(Plays(writes_and_runs(1.9), fakes), NO_HELP)
    assert record.bests == (1, 2)
    assert [(r.solution, r.reproduced) for r in record.reruns] == [(2, True), (1, True)]
    assert record.final.number == 1
    assert "scores otherwise when run alone" in record.warnings[0]


async def test_a_solution_worse_alone_stays_final_if_it_still_beats_the_others(play):
    luck = writes_and_runs(1.9) + "\nprint('Validation score: 0.05')"
    record = await play(Plays(writes_and_runs(1), luck), NO_HELP)
    assert [r.solution for r in record.reruns] == [2]
    assert record.final.number == 2
    assert record.reproduced.scores.validation.value == pytest.approx(0.1)


async def test_a_final_solution_that_nothing_reproduces_is_kept_and_said(play, folder_of_run):
    cheats = writes_and_runs(1.99) + "\nopen('solution.py', 'w').write('1 / 0')"
    record = await play(Plays(cheats), NO_HELP)
    summary = write_results(folder_of_run, record)
    assert summary.best.solution is not None
    assert not summary.reproduced
    assert "not reproduced" in summary.warnings[0]


async def test_cancelling_closes_the_sandbox_and_keeps_the_journal(play, folder_of_run):
    mark = f"8{os.getpid()}.5"
    actions = Plays(writes_and_runs(2), f"import subprocess; subprocess.run(['sleep', '{mark}'])")
    session = asyncio.create_task(play(actions, NO_HELP))
    journal = folder_of_run / FILE
    while not journal.exists() or "sleep" not in journal.read_text():  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.3)
    session.cancel()
    with pytest.raises(asyncio.CancelledError):
        await session
    record = record_of(read_journal(folder_of_run))
    assert (record.ended.outcome, record.final.number) == ("interrupted", 1)
    finding = await asyncio.create_subprocess_exec("pgrep", "-f", f"^sleep {mark}")
    assert await finding.wait() == 1


async def test_two_sessions_of_one_task_at_once(tmp_path, tiny_task):
    from mle_ideator.config import RunConfig
    from mle_ideator.sandboxes.local import LocalSandbox
    from mle_ideator.session import run_session
    from mle_ideator.setups import Setup

    async def one(name, factor):
        folder = tmp_path / name
        folder.mkdir()
        task, grader = tiny_task
        setup = Setup(
            task=task,
            grader=grader,
            implementer=Plays(writes_and_runs(factor)),
            ideator=NO_HELP,
            sandbox=LocalSandbox,
            folder=folder,
            config=RunConfig(),
        )
        with Journal(folder / FILE) as journal:
            await run_session(setup, journal)
        return record_of(read_journal(folder)).final.scores.validation.value

    assert await asyncio.gather(one("a", 1), one("b", 1.5)) == [1, 0.5]


# ------------------------------------------------------------------- what models cost and say


class Spends(Plays):
    """Each answer costs the same."""

    def __init__(self, usage, *actions, **more):
        super().__init__(*actions)
        self.usage, self.more = usage, more

    async def act(self, situation):
        decision = await super().act(situation)
        return msgspec.structs.replace(decision, usage=self.usage, **self.more)


class Advises:
    """Each idea costs the same."""

    def __init__(self, usage):
        self.usage = usage
        self.saw = []

    async def propose(self, state):
        self.saw.append(state)
        return Proposal(Idea("Refine: go on.", "Do more.", "It may help."), usage=self.usage)


def dollars(cost, tokens=100):
    return Usage(calls=1, input_tokens=tokens, output_tokens=0, cost_usd=cost, at_most_usd=cost)


async def test_the_cap_on_cost_covers_both_agents(play):
    agent, ideator = Spends(dollars(0.25), HELP, HELP, HELP), Advises(dollars(0.5))
    record = await play(agent, ideator, limits=Limits(cost_usd=1.5))
    assert [situation.remaining.cost_usd for situation in agent.saw] == [1.5, 0.75]
    assert [state.situation.remaining.cost_usd for state in ideator.saw] == [1.25, 0.5]
    assert record.ended.outcome == "cost"
    assert record.implementer_usage.cost_usd + record.ideator_usage.cost_usd == 1.5


async def test_a_call_that_the_implementer_can_not_afford_ends_the_session_in_order(play):
    class Poor(Plays):
        async def act(self, situation):
            if situation.trajectory:
                raise OutOfBudget("a call could cost $2, and $1 is left: it was not made.")
            return await super().act(situation)

    record = await play(Poor(writes_and_runs(1)), NO_HELP, limits=Limits(cost_usd=1.0))
    assert record.ended.outcome == "cost"
    assert record.reproduced is not None
    assert any("was not made" in warning for warning in record.warnings)


async def test_an_idea_that_is_not_affordable_is_told_and_the_session_goes_on(play):
    record = await play(Plays(HELP, "print(1)"), Says(OutOfBudget("too dear.")))
    assert "the money that is left does not pay for an idea" in record.steps[0].observation.text
    assert record.ended.outcome == "finished"


async def test_unknown_costs_under_a_cap_are_said_once(play):
    agent = Spends(UNKNOWN_USAGE, "1", "2", "3")
    record = await play(agent, NO_HELP, limits=Limits(cost_usd=1.0))
    assert [w for w in record.warnings if "unknown" in w] == [
        "what the implementer's calls cost is unknown; the cap does not cover them"
    ]
    assert record.implementer_usage.cost_usd is None


async def test_tokens_are_a_limit(play):
    agent = Spends(dollars(0.0, tokens=600), "1", "2", "3")
    record = await play(agent, NO_HELP, limits=Limits(tokens=1000))
    assert record.ended.outcome == "tokens"
    assert len(record.steps) == 2


async def test_further_actions_of_a_reply_are_named_as_ignored(play):
    agent = Spends(Usage(), "print(1)", ignored=("execute_bash", "finish"))
    record = await play(agent, NO_HELP)
    assert "Ignored: execute_bash, finish." in record.steps[0].observation.text


async def test_what_the_ideator_is_asked_is_in_the_journal(play, folder_of_run):
    await play(Plays(writes_and_runs(1), HELP), NO_HELP)
    (asked,) = [event for event in read_journal(folder_of_run) if isinstance(event, Asked)]
    assert asked.step == 2
    assert asked.request == HELP.request
    assert "* 1" in asked.code
    assert asked.remaining.steps == 19


async def test_a_cell_is_clamped_to_what_is_left_after_a_long_thought(play):
    class Slow(Plays):
        async def act(self, situation):
            await asyncio.sleep(2)
            return await super().act(situation)

    start = time.monotonic()
    record = await play(Slow("import time; time.sleep(60)"), NO_HELP, limits=Limits(time_s=6.0))
    assert record.steps[0].observation.status == "timeout"
    assert record.steps[0].observation.duration_s < 4
    assert time.monotonic() - start < 15


async def test_an_ideator_that_hangs_costs_half_of_the_time_and_no_more(play):
    class Hangs:
        async def propose(self, state):
            await asyncio.sleep(1000)

    agent = Plays(HELP, writes_and_runs(1))
    record = await play(agent, Hangs(), limits=Limits(time_s=20.0))
    assert "the ideator took too long" in record.steps[0].observation.text
    assert any("did not answer within" in warning for warning in record.warnings)
    assert record.final is not None


async def test_an_implementer_that_hangs_ends_the_session_with_its_bill(play):
    class Hangs:
        async def act(self, situation):
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError as error:
                error.usage, error.detail = dollars(0.5), "connection refused"
                raise

    record = await play(Hangs(), NO_HELP, limits=Limits(time_s=3.0))
    assert record.ended.outcome == "time"
    assert any("connection refused" in warning for warning in record.warnings)
    assert record.implementer_usage.cost_usd == 0.5


async def test_the_bill_of_an_implementer_that_breaks_is_kept(play, folder_of_run):
    class Breaks:
        async def act(self, situation):
            error = AgentError("no answer")
            error.usage = dollars(0.5)
            raise error

    with pytest.raises(AgentError):
        await play(Breaks(), NO_HELP)
    assert record_of(read_journal(folder_of_run)).implementer_usage.cost_usd == 0.5


@pytest.mark.parametrize(
    "answer",
    [
        None,
        Proposal(Idea("Refine: go on.", "Do more.", 3)),
        Proposal("an idea"),
        Proposal(None, usage=msgspec.structs.replace(Usage(), output_tokens=1.5)),
    ],
)
async def test_what_a_reader_could_not_read_back_never_reaches_the_journal(play, answer):
    class Answers:
        async def propose(self, state):
            return answer

    record = await play(Plays(HELP), Answers())
    assert record.steps[0].observation.status == "told"
    assert any("the ideator broke" in warning for warning in record.warnings)
    assert record.ended.outcome == "finished"


async def test_a_number_beyond_all_solutions_is_no_revert(play):
    idea = Idea(f"Revert to #{'9' * 5000}: it was better.", "Do more.", "It may help.")
    record = await play(Plays(HELP), Says(idea))
    assert record.ended.outcome == "finished"
