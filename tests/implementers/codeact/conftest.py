"""A situation in the middle of a session."""

from __future__ import annotations

import pytest

from mle_ideator.types import (
    Execute,
    HelpRequest,
    Idea,
    Malformed,
    Observation,
    Remaining,
    SandboxInfo,
    Score,
    Scores,
    SeekHelp,
    Situation,
    Solution,
    Step,
)

WRITES = "cat > solution.py <<'EOF'\nprint('Validation score: 0.5')\nEOF\npython solution.py"
SOLUTION = "print('Validation score: 0.5')\n"
REQUEST = HelpRequest("no gain", "two models", "a better one")
SANDBOX = SandboxInfo(
    kind="bubblewrap",
    python="3.12.3",
    libraries={"numpy": "2.3.1", "pandas": "3.0.0", "scikit-learn": "1.7.0"},
    cores=8,
    memory_gib=62.5,
    gpus=("NVIDIA H200",),
    network=False,
)
STEPS = (
    Step(
        number=1,
        action=Execute("bash", WRITES),
        thought="A first solution.",
        observation=Observation(
            text="Validation score: 0.5\n[runtime] Solution #1 accepted: validation 0.5",
            status="ok",
            duration_s=1.25,
        ),
        solution=1,
    ),
    Step(
        number=2,
        action=Malformed("the reply is empty."),
        observation=Observation(text="[runtime] Nothing was executed: the reply is empty."),
    ),
    Step(
        number=3,
        action=Malformed("<python> is no action.", "<python>\n1\n</python>"),
        observation=Observation(text="[runtime] Nothing was executed: <python> is no action."),
    ),
    Step(
        number=4,
        action=SeekHelp(REQUEST),
        thought="I ask.",
        observation=Observation(text="<analysis>Refine: fine.</analysis>", status="idea"),
        idea=Idea("Refine: fine.", "Go on.", "It helps."),
    ),
    Step(
        number=5,
        action=SeekHelp(REQUEST, asked_by="runtime"),
        observation=Observation(text="[runtime] No idea came: timeout.", status="no_idea"),
    ),
    Step(
        number=6,
        action=Execute("python", "x = 1"),
        observation=Observation(text="", status="ok", duration_s=0.004),
    ),
)


@pytest.fixture
def situation(tiny_task):
    task, _ = tiny_task
    solution = Solution(
        number=1,
        step=1,
        code=SOLUTION,
        scores=Scores(Score(0.5, False), Score(0.625, False)),
        digest="",
    )
    return Situation(
        task=task,
        trajectory=STEPS,
        solutions=(solution,),
        best=1,
        code=SOLUTION,
        remaining=Remaining(
            steps=14, help_requests=8, seconds=2700, step_seconds=90, cost_usd=0.375
        ),
        sandbox=SANDBOX,
        seed=0,
    )
