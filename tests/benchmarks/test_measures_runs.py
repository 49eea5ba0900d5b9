"""Runs are measured from their folders: real sessions, and what is left of those that broke."""

from pathlib import Path

import msgspec
import pytest
import yaml

from mle_ideator import __version__
from mle_ideator.benchmarks.leaderboards import Leaderboard
from mle_ideator.benchmarks.measures import one_run, remembered
from mle_ideator.benchmarks.measures.contenders import figures_of
from mle_ideator.benchmarks.measures.finding import cell_of, expected_cells, run_folders
from mle_ideator.benchmarks.measures.one_run import measure_all, measure_run
from mle_ideator.benchmarks.measures.values import Cell, Contender
from mle_ideator.benchmarks.runner.folders import run_folder
from mle_ideator.benchmarks.runner.plan import Plan, common_config, write_plan
from mle_ideator.benchmarks.runner.states import CellState, write_state
from mle_ideator.benchmarks.running import run_to_end, set_up
from mle_ideator.config import RunConfig
from mle_ideator.journal import FILE, Rerun, Solved, Started, Stepped, read_journal
from mle_ideator.limits import Limits
from mle_ideator.types import Execute, HelpRequest, Idea, Proposal, Scores, SeekHelp, Usage
from tests.benchmarks.twice import write_task
from tests.conftest import writes_and_runs


@pytest.fixture
def task_folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("MLE_IDEATOR_CACHE", str(tmp_path / "cache"))
    return write_task(tmp_path / "tasks" / "twice")


def script_of(file: Path, *factors: float | str) -> str:
    """A scripted implementer: a factor writes and runs y = factor * x, `help` seeks help."""
    asking = {"type": "seek_help", "request": {"problem": "p", "attempts": "a", "goal": "g"}}
    file.write_text(
        yaml.safe_dump(
            [
                asking
                if factor == "help"
                else {"type": "execute", "language": "python", "code": writes_and_runs(factor)}
                for factor in factors
            ]
        )
    )
    return f"scripted:{file}"


def ideas_in(file: Path, *actions: str) -> str:
    ideas = [{"analysis": "Refine.", "action": action, "rationale": "r"} for action in actions]
    file.write_text(yaml.safe_dump(ideas))
    return f"fixed:{file}"


async def results(root: Path, plan: Plan, cells: list[Cell] | None = None) -> None:
    """What `bench run` leaves, with sessions one after the other."""
    root.mkdir()
    write_plan(root, plan)
    for cell in plan.cells() if cells is None else cells:
        folder = run_folder(root, cell)
        folder.mkdir(parents=True)
        await run_to_end(set_up(plan.config_of(cell), folder))


def plan_of(
    task: Path, ideators: tuple[str, ...], implementer: str, seeds: tuple[int, ...]
) -> Plan:
    return Plan(
        version=__version__,
        suite="own",
        tasks=(str(task),),
        ideators=ideators,
        implementers=(implementer,),
        seeds=seeds,
        config=common_config(RunConfig(sandbox="local", limits=Limits(steps=8))),
    )


async def test_a_real_run_in_numbers(tmp_path, task_folder):
    implementer = script_of(tmp_path / "script.yaml", 1.9, "help", 2.05, "help", 1.5)
    ideator = ideas_in(tmp_path / "ideas.yaml", "Blend two models.", "Tune alpha.")
    plan = plan_of(task_folder, (ideator,), implementer, (3,))
    await results(tmp_path / "R", plan)
    (run,) = measure_all(tmp_path / "R")
    assert run.cell == plan.cells()[0]
    assert (tmp_path / "R" / run.folder / FILE).is_file()
    assert (run.outcome, run.valid, run.ranked, run.detail) == ("finished", True, True, "")
    assert [moment.step for moment in run.history] == [1, 3, 5]
    assert [moment.best for moment in run.history] == [True, True, False]
    assert run.history[0].at_s < run.history[1].at_s < run.duration_s
    assert (run.steps, run.steps_to_first_valid, run.budget_steps) == (6, 1, 8)
    assert run.seconds_to_first_valid == run.history[0].at_s
    assert [idea.categories[:1] for idea in run.ideas] == [("ensembling",), ("hyper-parameters",)]
    assert [idea.improved for idea in run.ideas] == [True, False]
    assert (run.help_requests, run.improvements) == (2, 1)
    # rows are 0 … 79, an error of .05 x: its RMSE lies between .05 · 30 and .05 · 60
    assert 1.5 < run.scores.private.value < 3
    assert run.scores.validation.value == pytest.approx(0.05)
    assert run.medal in ("silver", "bronze")
    assert run.above_median
    assert run.human_rank == pytest.approx(0.9 if run.medal == "silver" else 0.8, abs=0.11)
    assert run.history[0].human_rank < run.human_rank
    assert run.history[2].medal is None
    assert run.flags == ()
    assert run.title == "Twice as much"
    assert run.metric.name == "rmse"
    assert run.baseline.private is not None


@pytest.mark.slow
async def test_the_offline_pair_in_numbers(tmp_path, task_folder):
    config = common_config(RunConfig(sandbox="local", limits=Limits(steps=6)))
    plan = msgspec.structs.replace(
        plan_of(task_folder, ("offline",), "offline", (0,)), config=config
    )
    await results(tmp_path / "R", plan)
    (run,) = measure_all(tmp_path / "R")
    assert run.valid
    assert run.steps == 6
    assert run.help_requests == len(run.ideas) >= 1
    assert all(idea.categories for idea in run.ideas)
    assert run.improvements == sum(idea.improved for idea in run.ideas)
    assert run.scores.private.better_than(run.baseline.private)
    assert run.usage.tokens == 0
    assert run.flags == ()


async def test_results_of_two_ideators_with_a_cell_that_is_missing_and_one_given_up(
    tmp_path, task_folder
):
    implementer = script_of(tmp_path / "script.yaml", "help", 2.01)
    good = ideas_in(tmp_path / "good.yaml", "Add ratios.")
    plan = plan_of(task_folder, (good, "null"), implementer, (0, 1))
    root = tmp_path / "R"
    cells = plan.cells()
    await results(root, plan, cells[:2])
    write_state(root, CellState(cell=cells[2], status="failed", attempts=3, error="no server"))
    assert expected_cells(root) == tuple(cells)
    runs = measure_all(root)
    assert {run.cell for run in runs} == set(cells[:3])
    (broken,) = [run for run in runs if run.cell == cells[2]]
    assert (broken.outcome, broken.valid, broken.detail) == ("failed", False, "no server")
    assert broken.ranked
    found = figures_of(runs, expected=expected_cells(root))
    by_name = {each.contender.ideator: each for each in found.contenders}
    assert (by_name["null"].counts.missing, by_name["null"].counts.runs) == (1, 1)
    ours = by_name[good]
    assert (ours.counts.failed, ours.counts.runs) == (1, 2)
    assert by_name["null"].figure("avg_at_k").value > 50
    assert ours.figure("avg_at_k").value == pytest.approx(
        by_name["null"].figure("avg_at_k").value / 2
    )
    (comparison,) = found.comparisons
    assert (comparison.pairs, comparison.only_first + comparison.only_second) == (1, 1)


async def test_the_final_scores_are_the_clean_reruns(folder_of_run, play, tmp_path):
    class Implementer:
        async def act(self, situation):
            from mle_ideator.types import Decision, Finish

            if situation.trajectory:
                return Decision(Finish())
            # solution.py is not what made the submission: alone it predicts otherwise
            return Decision(
                Execute("python", writes_and_runs(2.0) + "\nopen('solution.py', 'a').write('\\n')\n"
                        "text = open('solution.py').read().replace('* 2.0', '* 1.5')\n"
                        "open('solution.py', 'w').write(text)")
            )  # fmt: skip

    class Ideator:
        async def propose(self, state):
            return Proposal(Idea("Refine.", "a", "r"))

    await play(Implementer(), Ideator())
    board = Leaderboard(scores=(0.0, 1.0, 2.0, 3.0), higher_is_better=False)
    run = measure_run(folder_of_run, Cell("t", Contender("i", "j"), 0), board, tmp_path)
    rerun = next(e for e in read_journal(folder_of_run) if isinstance(e, Rerun))
    assert rerun.reproduced
    assert run.history[0].scores.private.value == 0
    assert run.scores == rerun.scores
    assert run.scores.private.value > 1
    assert run.history[0].human_rank == 1
    assert run.human_rank < 1
    assert run.folder == "run"


class Twice:
    """Seeks help, then writes a solution; costs something."""

    async def act(self, situation):
        from mle_ideator.types import Decision, Finish

        known = Usage(calls=1, input_tokens=10, output_tokens=5, cost_usd=0.25)
        actions = [SeekHelp(HelpRequest("p", "a", "g")), Execute("python", writes_and_runs(2.0))]
        taken = len(situation.trajectory)
        return Decision(actions[taken] if taken < 2 else Finish(), usage=known)


class Adviser:
    async def propose(self, state):
        spent = Usage(calls=1, input_tokens=100, output_tokens=50, cost_usd=1.0)
        return Proposal(Idea("Refine.", "Try harder.", "r"), usage=spent)


async def test_tokens_and_cost_are_those_of_both_agents(folder_of_run, play):
    await play(Twice(), Adviser())
    run = measure_run(folder_of_run, None, None, folder_of_run.parent)
    assert (run.usage.tokens, run.usage.cost_usd) == (3 * 15 + 150, pytest.approx(1.75))
    assert (run.ideator_usage.tokens, run.ideator_usage.cost_usd) == (150, 1.0)
    assert not run.ranked
    assert run.ideas[0].categories == ()
    assert run.ideas[0].improved


@pytest.mark.parametrize("last", [Started, Stepped, Solved, Rerun])
async def test_a_run_that_was_killed_is_measured_as_it_stands(folder_of_run, play, last):
    await play(Twice(), Adviser())
    file = folder_of_run / FILE
    lines = file.read_bytes().splitlines(keepends=True)
    places = [i for i, event in enumerate(read_journal(folder_of_run)) if isinstance(event, last)]
    file.write_bytes(b"".join(lines[: places[-1] + 1]) + b'{"type": "step')
    run = measure_run(folder_of_run, None, None, folder_of_run)
    assert run.outcome is None
    assert "not ended" in run.detail
    assert run.valid == (last is Rerun)
    assert run.steps_to_first_valid == (None if last is Started else 2)
    assert figures_of([run]).contenders[0].counts.unended == 1


async def test_a_damaged_journal_is_a_failed_run_with_its_reason(tmp_path, task_folder):
    plan = plan_of(task_folder, ("null",), script_of(tmp_path / "s.yaml", 2.0), (0, 1))
    root = tmp_path / "R"
    await results(root, plan)
    journal = run_folder(root, plan.cells()[1]) / FILE
    journal.write_bytes(b"\x00\xff\n" + journal.read_bytes())
    whole, damaged = measure_all(root)
    assert whole.valid
    assert (damaged.cell, damaged.outcome, damaged.valid) == (plan.cells()[1], "failed", False)
    assert "line 1 is no event" in damaged.detail


async def test_measures_are_remembered_until_a_journal_changes(tmp_path, task_folder, monkeypatch):
    plan = plan_of(task_folder, ("null",), script_of(tmp_path / "s.yaml", 2.0), (0, 1))
    root = tmp_path / "R"
    await results(root, plan)
    first = measure_all(root)
    measured = []

    def counted(folder, *rest):
        measured.append(folder)
        return measure_run(folder, *rest)

    monkeypatch.setattr(one_run, "measure_run", counted)
    assert measure_all(root) == first
    assert measured == []
    journal = run_folder(root, plan.cells()[1]) / FILE
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]))
    again = measure_all(root)
    assert measured == [journal.parent]
    assert again[0] == first[0]
    assert again[1].outcome is None
    (task_folder / "leaderboard.csv").write_text("reference,public,private\nr,0,0\n")
    assert len(measure_all(root)) == 2
    assert len(measured) == 3


async def test_what_was_remembered_may_be_lost_or_be_impossible_to_write(
    tmp_path, task_folder, monkeypatch
):
    plan = plan_of(task_folder, ("null",), script_of(tmp_path / "s.yaml", 2.0), (0,))
    root = tmp_path / "R"
    await results(root, plan)
    first = measure_all(root)
    (file,) = (tmp_path / "cache" / "measures").iterdir()
    file.write_bytes(b"garbage")
    assert measure_all(root) == first
    monkeypatch.setattr(remembered, "cache_folder", lambda: Path("/dev/null/tasks"))
    assert measure_all(root) == first


async def test_many_runs_are_measured_by_several_processes(tmp_path, task_folder, monkeypatch):
    plan = plan_of(task_folder, ("null",), script_of(tmp_path / "s.yaml", 2.0), (0, 1))
    root = tmp_path / "R"
    await results(root, plan)
    alone = measure_all(root)
    monkeypatch.setattr(one_run, "MANY", 2)
    monkeypatch.setattr(one_run, "recall", lambda root: {})
    assert measure_all(root) == alone


async def test_loose_runs_go_by_their_config(tmp_path, task_folder):
    config = RunConfig(task=str(task_folder), sandbox="local", seed=7, ideator="null",
                       implementer=script_of(tmp_path / "s.yaml", 2.0))  # fmt: skip
    folder = tmp_path / "mine" / "deep" / "run"
    folder.mkdir(parents=True)
    await run_to_end(set_up(config, folder))
    deeper = folder / "workspace" / "inner"
    deeper.mkdir()
    (deeper / FILE).write_text("{}")  # agents' files are not looked at
    (run,) = measure_all(tmp_path / "mine")
    assert run.cell == Cell(str(task_folder), Contender("null", config.implementer), 7)
    assert run.folder == str(Path("deep", "run"))
    (same,) = measure_all(folder)
    assert msgspec.structs.replace(same, folder=run.folder) == run
    assert expected_cells(tmp_path / "mine") == ()


def test_own_data_go_by_their_file():
    config = msgspec.to_builtins(
        RunConfig(seed=1, data={"train": "t.csv", "target": "y"})  # type: ignore[arg-type]
    )
    assert cell_of(config) == Cell("t.csv", Contender("offline", "offline"), 1)


def test_a_folder_without_runs_has_none(tmp_path):
    (tmp_path / "empty" / "journal").mkdir(parents=True)
    assert measure_all(tmp_path) == []
    assert list(run_folders(tmp_path)) == []


async def test_an_unknown_task_leaves_runs_unranked(tmp_path, task_folder, caplog):
    plan = plan_of(task_folder, ("null",), script_of(tmp_path / "s.yaml", 2.0), (0,))
    await results(tmp_path / "R", plan)
    (task_folder / "leaderboard.csv").write_text("nonsense\n1\n")
    (run,) = measure_all(tmp_path / "R")
    assert run.valid
    assert not run.ranked
    assert "are not ranked" in caplog.text
    assert run.scores != Scores()
