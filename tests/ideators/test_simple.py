"""The ideators for comparison: null, vague, fixed, random."""

from __future__ import annotations

from pathlib import Path

import pytest

from mle_ideator.errors import UsageError
from mle_ideator.ideators.fixed import FixedIdeator
from mle_ideator.ideators.null import NullIdeator
from mle_ideator.ideators.random_operation import RandomIdeator
from mle_ideator.ideators.vague import VagueIdeator
from mle_ideator.operations import mentioned
from mle_ideator.recipes import Column
from mle_ideator.registry import create
from mle_ideator.types import Proposal

IDEAS = """
- {analysis: "Refine: a", action: "Use ratios.", rationale: "r"}
- {analysis: "Revert to #1: b", action: "Use a random forest.", rationale: "r"}
"""


async def test_null_has_no_guidance(story, task):
    assert await NullIdeator().propose(story(task()).state()) == Proposal(None, "no guidance")


async def test_vague_names_nothing(story, task):
    idea = (await VagueIdeator().propose(story(task()).state())).idea
    assert idea
    text = f"{idea.analysis} {idea.action} {idea.rationale}"
    assert "try harder" in text.lower()
    assert mentioned(text) == ()


async def test_fixed_gives_the_nth_idea_to_the_nth_request_and_repeats_the_last(
    story, task, tmp_path: Path
):
    file = tmp_path / "ideas.yaml"
    file.write_text(IDEAS)
    ideator, told = create("ideators", f"fixed:{file}"), story(task()).solved("a = 1", 1.0)
    actions = []
    for _ in range(3):
        idea = (await ideator.propose(told.state())).idea
        actions.append(idea.action)
        told.idea(idea.action)
    assert actions == ["Use ratios.", "Use a random forest.", "Use a random forest."]


async def test_fixed_reads_json_with_a_byte_order_mark(story, task, tmp_path: Path):
    file = tmp_path / "ideas.json"
    file.write_text(
        '\ufeff[{"analysis": "Refine: a", "action": "Zoë’s", "rationale": "r"}]', encoding="utf-8"
    )
    idea = (await FixedIdeator(str(file)).propose(story(task()).state())).idea
    assert idea
    assert idea.action == "Zoë’s"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[]", "holds no ideas"),
        ("", "is no YAML or JSON list of ideas"),
        ("a: b", "is no YAML or JSON list of ideas"),
        ("[1, 2]", "is no YAML or JSON list of ideas"),
        ("- {analysis: a, action: b}", "rationale"),
        ("- {analysis: a, action: b, rationale: [c]}", "is no YAML or JSON list of ideas"),
        ("- {analysis: a, action: b, rationale: c, extra: d}", "extra"),
        ("- {analysis: '', action: b, rationale: c}", "empty"),
        ("- {unclosed", "is no YAML or JSON list of ideas"),
        ("\x00", "is no YAML or JSON list of ideas"),
        (b"\xff\xfe\x41", "cannot read"),
        ("[" * 600, "is no YAML or JSON list of ideas"),
        ("!!python/object/apply:os.system ['true']", "is no YAML or JSON list of ideas"),
    ],
)
def test_a_bad_file_of_ideas_is_refused_in_one_line(content, says, tmp_path: Path):
    file = tmp_path / "ideas.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UsageError, match=says) as caught:
        FixedIdeator(str(file))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("argument", ["", "no/such/file.yaml", "."])
def test_a_missing_file_of_ideas_is_refused(argument):
    with pytest.raises(UsageError):
        FixedIdeator(argument)


async def test_random_draws_only_what_fits_and_varies_with_seed_and_step(story, task, profile):
    number = Column(name="x", kind="number", levels=99)
    drawn = set()
    for seed in range(40):
        told = story(task(), profile(number), seed=seed)
        for _ in range(3):
            idea = (await RandomIdeator().propose(told.state())).idea
            drawn.add(mentioned(idea.action)[0].name)
            told.cell()
    assert len(drawn) >= 8
    assert not drawn & {"text_words", "text_characters", "image_shifts", "lag_features", "ratios"}
