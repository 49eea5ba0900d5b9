"""The offline implementer as a policy: what it does in which situation, and what it says."""

from __future__ import annotations

import msgspec
import pytest

from mle_ideator.implementers.offline import OfflineImplementer
from mle_ideator.protocols import Implementer
from mle_ideator.recipes import Recipe, profile_in, recipe_in
from mle_ideator.types import Execute, Finish, Idea, Malformed, Observation, SeekHelp, Step


def idea(action: str, analysis: str = "refine") -> Idea:
    return Idea(analysis, action, "it may help")


def recipes(session) -> list[Recipe]:
    """The recipes of a session's attempts, in order."""
    cells = (s.action.code for s in session.trajectory if isinstance(s.action, Execute))
    return [recipe for recipe in map(recipe_in, cells) if recipe is not None]


def test_it_is_an_implementer():
    assert isinstance(OfflineImplementer(), Implementer)


@pytest.mark.slow
async def test_a_whole_session_looks_tries_two_models_and_carries_out_ideas(session):
    run = await session(
        "regression",
        ideas=[idea("Train on log1p of the target."), idea("Add date parts; average 2 seeds.")],
        steps=7,
    ).run()
    kinds = [type(step.action) for step in run.trajectory]
    assert kinds == [Execute, Execute, Execute, SeekHelp, Execute, SeekHelp, Execute]
    profile = profile_in(run.trajectory[0].observation.text)
    assert profile is not None
    assert profile.rows == 224
    first, second, third, fourth = recipes(run)
    assert first.operations == ("model_linear",)
    assert second.operations == ("model_boosting",)
    assert "target_log" in third.operations
    assert {"date_parts"} <= set(fourth.operations)
    assert all(step.observation.status == "ok" for step in run.trajectory if step.solution)
    assert len(run.solutions) == 4


@pytest.mark.slow
async def test_the_same_seed_makes_the_same_trajectory(session):
    ideas = [idea("Use a random forest with more capacity."), idea("Blend boosting and ridge.")]
    one, two = [await session("binary", ideas=list(ideas), steps=7).run() for _ in range(2)]
    assert one.trajectory == two.trajectory


@pytest.mark.slow
async def test_nothing_is_remembered_between_calls(session):
    run = await session("binary", ideas=[idea("Tune it.")], steps=5).run()
    encoded = msgspec.json.encode(run.situation)
    again = msgspec.json.decode(encoded, type=type(run.situation))
    policy = OfflineImplementer()
    assert await policy.act(again) == await policy.act(run.situation)
    for length in range(len(run.trajectory)):
        kept = tuple(run.trajectory[:length])
        numbers = {step.solution for step in kept}
        solutions = tuple(s for s in run.solutions if s.number in numbers)
        left = msgspec.structs.replace(run.situation.remaining, steps=run.steps - length)
        then = msgspec.structs.replace(
            run.situation, trajectory=kept, solutions=solutions, remaining=left
        )
        decision = await policy.act(then)
        assert decision.action == run.trajectory[length].action, length


async def test_a_help_request_says_what_was_tried_and_what_it_brought(session):
    run = await session("regression", steps=5).run()
    request = run.trajectory[3].action.request
    scores = [str(solution.scores.validation) for solution in run.solutions[:2]]
    assert all(score in request.attempts for score in scores)
    assert "model_linear" in request.attempts
    assert "model_boosting" in request.attempts
    assert "rmse" in request.problem
    assert "lower" in request.goal


@pytest.mark.slow
async def test_what_got_worse_is_undone(session):
    run = await session(
        "regression", ideas=[idea("Use PCA."), idea("Add frequency encoding.")], steps=7
    ).run()
    pca, after = run.solutions[2].scores.validation, recipes(run)[3]
    best_before = min(s.scores.validation.value for s in run.solutions[:2])
    assert pca.value > best_before, "the example must get worse"
    assert "no better" in run.trajectory[5].thought
    assert "pca" not in after.operations
    assert "frequency_encoding" in after.operations


@pytest.mark.slow
async def test_it_reverts_where_the_idea_says_so(session):
    run = await session(
        "regression",
        ideas=[idea("Use log1p of the target."), idea("Add ratios.", "Revert to #1: simpler.")],
        steps=7,
    ).run()
    assert set(recipes(run)[-1].operations) == {"model_linear", "ratios"}
    assert "Back at #1" in run.trajectory[-1].thought


@pytest.mark.parametrize("text", ["Try harder.", "", "Find better features!"])
async def test_a_vague_idea_is_reported_as_a_failed_execution(session, text):
    run = await session("binary", ideas=[idea(text)], steps=5).run()
    thought = run.trajectory[-1].thought
    assert "names no operation I know: reported as a failed execution" in thought
    assert "another seed" in thought
    assert recipes(run)[-1].seed == 1


@pytest.mark.slow
async def test_without_ideas_it_asks_once_and_goes_on_modestly_to_the_end(session):
    run = await session("text", steps=30).run()
    asked = [step for step in run.trajectory if isinstance(step.action, SeekHelp)]
    assert len(asked) == 1
    assert isinstance(run.trajectory[-1].action, Finish)
    assert "left to try" in run.trajectory[-1].action.reason
    own = recipes(run)
    assert len(own) == len({msgspec.json.encode(recipe) for recipe in own}), "nothing twice"
    assert not {"text_characters", "blend", "tune"} & {n for r in own for n in r.operations}


async def test_what_does_not_apply_is_said_with_the_reason(session):
    run = await session(
        "regression", ideas=[idea("Shift the images by a pixel and add ratios.")], steps=5
    ).run()
    assert "taken: ratios" in run.trajectory[-1].thought
    assert "not image_shifts: there are no images" in run.trajectory[-1].thought


async def test_what_was_tried_before_is_not_run_again(session):
    run = await session("regression", ideas=[idea("Use a linear model.")], steps=5).run()
    ridge_is_best = recipe_in(run.solutions[0].code) and (
        run.solutions[0].scores.validation.value < run.solutions[1].scores.validation.value
    )
    thought = run.trajectory[-1].thought
    assert ("can be done" if ridge_is_best else "tried before") in thought
    assert recipes(run)[-1].seed == 1


FAILED = Observation(text="Traceback …\nValueError: it broke", status="error")
TIMEOUT = Observation(text="", status="timeout")


async def test_a_failed_idea_is_repaired_once_without_its_last_operation(session):
    run = await session(
        "regression", ideas=[idea("Add ratios and frequency encoding.")], steps=8,
        break_cells={5: FAILED, 6: FAILED},
    ).run()  # fmt: skip
    assert "ValueError: it broke" in run.trajectory[5].thought
    assert "once more without frequency_encoding" in run.trajectory[5].thought
    assert "ratios" in recipes(run)[3].operations
    assert "frequency_encoding" not in recipes(run)[3].operations
    assert isinstance(run.trajectory[6].action, SeekHelp), "a failed repair is not repaired"
    assert "failed (error)" in run.trajectory[6].action.request.attempts


async def test_an_attempt_that_took_too_long_is_tried_on_fewer_rows(session):
    run = await session("regression", steps=3, break_cells={2: TIMEOUT}).run()
    assert "too long" in run.trajectory[2].thought
    assert recipes(run)[1].sample == 3000
    assert run.trajectory[2].solution == 1


async def test_short_cells_get_a_sample(session):
    run = await session("regression", steps=2, step_seconds=8.0).run()
    assert recipes(run)[0].sample == 3000


@pytest.mark.parametrize(
    "text", ["", "profile: {", 'profile: {"rows": 1}', "profile: null", "no\x00thing", "KeyError"]
)
async def test_without_a_profile_it_looks_again_and_then_gives_up(session, text):
    broken = Observation(text=text, status="ok")
    run = await session("regression", break_cells={1: broken, 2: broken}).run()
    assert [type(step.action) for step in run.trajectory] == [Execute, Execute, Finish]
    assert "can not be read" in run.trajectory[-1].action.reason


async def test_it_stops_in_time(session):
    run = session("regression", seconds=2.0)
    assert isinstance((await run.step()).action, Finish)


async def test_a_last_step_is_no_help_request(session):
    run = await session("regression", steps=4).run()
    assert isinstance(run.trajectory[3].action, Execute)


async def test_without_help_requests_it_goes_on_alone(session):
    run = await session("regression", steps=5, help_requests=0).run()
    assert [type(step.action) for step in run.trajectory] == [Execute] * 5


async def test_foreign_steps_and_code_do_not_disturb_it(session):
    """A situation in which others acted: prose, bash, a solution by hand."""
    run = session("regression")
    await run.step()
    run.trajectory.append(
        Step(number=2, action=Malformed("no action"), observation=Observation(text="?"))
    )
    run.trajectory.append(
        Step(number=3, action=Execute("bash", "ls"), observation=Observation(text="input"))
    )
    run.code = "print('Validation score: 1')"
    step = await run.step()
    assert recipe_in(step.action.code).operations == ("model_linear",)
