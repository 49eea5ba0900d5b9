"""The warm-up: ideas asked for and kept, shortened, learnt, and served."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from mle_ideator.cli import main
from mle_ideator.config import dump_config, load_config
from mle_ideator.errors import UsageError
from mle_ideator.idea_form import well_formed
from mle_ideator.ideators.offline.hints import HINTS
from mle_ideator.ideators.offline.reading import read
from mle_ideator.ideators.offline.wording import action, analysis
from mle_ideator.implementers.offline.understanding import gist
from mle_ideator.operations import OPERATIONS
from mle_ideator.rl.states import StateStore
from mle_ideator.rl.training.warm_up.config import Ideas, WarmUpConfig
from mle_ideator.rl.training.warm_up.ideas import Asking, Note, Source, gathered
from mle_ideator.rl.training.warm_up.shortening import shortened
from mle_ideator.setups import ideator_of
from mle_ideator.types import Idea, Proposal
from tests.benchmarks.twice import write_task
from tests.rl.made_rollouts import BREAKS, MadeRollouts, Says, cards, idea
from tests.rl.rollout_agents import solves
from tests.rl.training.made_store import (
    ACTIONS,
    FACTORS,
    Nobody,
    ShortIdeas,
    Sometimes,
    made_store,
)
from tests.weights import smollm2

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from mle_ideator.chat.hf import Transformers
from mle_ideator.ideators.prompted import PromptedIdeator
from mle_ideator.ideators.prompted.messages import messages_of
from mle_ideator.rl.training.prompting import answer_text, fitting_prompt, prompt_tokens
from mle_ideator.rl.training.room import room_of
from mle_ideator.rl.training.tiny import make_tiny
from mle_ideator.rl.training.warm_up.examples import Example, Reader, held_out_of
from mle_ideator.rl.training.warm_up.running import IDEAS, REPORT, ideas_file, warm_up
from mle_ideator.rl.training.warm_up.training import mean_loss

STATES = 24
ME = "tests.rl.training.made_store"


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    return made_store(tmp_path_factory.mktemp("store"), STATES)


@pytest.fixture(scope="module")
def states(store):
    with StateStore(store) as opened:
        return [opened.help_state(card.id) for card in opened.cards()]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory, states) -> Path:
    prompts = [message.text for state in states for message in messages_of(state, 384)]
    ideas = [answer_text(Idea("Refine: go on.", action, "It may help.")) for action in ACTIONS]
    folder = tmp_path_factory.mktemp("model") / "tiny"
    sizes = {"vocab": 512, "hidden": 64, "layers": 2, "heads": 2, "context": 512}
    return make_tiny(folder, [*prompts, *ideas * 9], **sizes)


@pytest.fixture
def config(store, tiny, tmp_path):
    def made(**changes) -> WarmUpConfig:
        given = {"states": str(store), "model": f"hf:{tiny}", "out": str(tmp_path / "W")}
        short = {"ideas_from": f"{ME}:ShortIdeas", "ideas": 4, "sampled": 8, "lr": 5e-3}
        return WarmUpConfig(**(given | short | changes))

    return made


# ----------------------------------------------------------------------------- from end to end


async def test_a_warmed_up_model_answers_in_form(config, states, tmp_path):
    told = []
    wanted = config(epochs=8, sampled=64, batch=4)
    warmed = await asyncio.to_thread(warm_up, wanted, told.append)
    assert warmed.loss_last < warmed.loss_first / 10
    assert warmed.held_out_loss < warmed.held_out_loss_before / 10
    assert (warmed.states, warmed.held_out_states) == (STATES, 2)
    assert warmed.answers.well_formed_share >= 0.9
    assert warmed.answers.distinct > 1
    assert set(warmed.answers.operations) <= {
        *("model_forest", "model_boosting", "ratios", "pca"),
    }
    assert {progress.phase for progress in told} == {"ideas", "training", "sampling"}
    for phase in ("ideas", "training", "sampling"):
        last = [progress for progress in told if progress.phase == phase][-1]
        assert last.done == last.planned
    out = tmp_path / "W"
    assert json.loads((out / REPORT).read_text())["answers"]["sampled"] == 64
    assert not ideas_file(out).exists()
    assert len((out / IDEAS).read_text().splitlines()) == 1 + 4 * STATES
    served = ideator_of(f"hf:{out}", {})
    proposal = await served.propose(states[0])
    await served.aclose()
    assert proposal.idea is not None


def test_the_same_seed_makes_the_same_weights(config, tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        warm_up(config(out=str(tmp_path / name), seed=seed, limit=6, epochs=1, sampled=2))
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in "abc"]
    assert weights[0] == weights[1] != weights[2]


@pytest.mark.filterwarnings("ignore::FutureWarning")  # peft's, of this transformers
def test_adapters_are_merged(config, tmp_path, tiny):
    pytest.importorskip("peft")
    warmed = warm_up(config(lora_rank=2, epochs=3, lr=1e-2))
    assert warmed.loss_last < warmed.loss_first
    out = tmp_path / "W"
    assert not list(out.glob("adapter*"))
    before, after = (Transformers(str(folder)).model().state_dict() for folder in (tiny, out))
    assert before.keys() == after.keys()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert all("proj" in name for name in changed)


@pytest.mark.slow
def test_random_operations_are_learnt_from_real_wording(store, states, tmp_path):
    """The long form: the ideator, the shortening and the model of `--preset tiny`."""
    ideas = [asyncio.run(ideator_of("random", {}).propose(state)).idea for state in states]
    texts = [message.text for state in states for message in messages_of(state, 768)]
    tiny = make_tiny(tmp_path / "tiny", texts + [answer_text(idea) for idea in ideas if idea])
    warmed = warm_up(
        WarmUpConfig(
            states=str(store),
            model=str(tiny),
            out=str(tmp_path / "W"),
            ideas_from="random",
            ideas=8,
            short=True,
            epochs=8,
            lr=5e-3,
        )
    )
    assert warmed.answers.well_formed_share >= 0.9
    assert len(warmed.answers.operations) >= 8


@pytest.mark.slow
def test_a_gguf_file_becomes_a_folder(store, tmp_path):
    warmed = warm_up(
        WarmUpConfig(
            states=str(store),
            model=f"hf:{smollm2()}",
            out=str(tmp_path / "W"),
            ideas_from="random",
            ideas=1,
            limit=3,
            short=True,
            epochs=2,
            batch=1,
            lr=3e-4,
            context_tokens=512,
            sampled=1,
        )
    )
    assert warmed.loss_last < warmed.loss_first
    assert Transformers(str(tmp_path / "W")).context_tokens == 512


# ---------------------------------------------------------------------------------- broken off


def test_nothing_is_there_before_the_end_and_no_idea_is_asked_for_twice(config, tmp_path):
    ShortIdeas.asked = 0

    def pull_the_plug(progress):
        if progress.phase == "training":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        warm_up(config(epochs=1), pull_the_plug)
    assert [path.name for path in tmp_path.iterdir()] == [f"W.{IDEAS}"]
    assert ShortIdeas.asked == 4 * STATES
    warm_up(config(epochs=1, sampled=0))
    assert ShortIdeas.asked == 4 * STATES
    assert (tmp_path / "W" / REPORT).exists()


def asking(rollouts, ideator, *, execute=False) -> Asking:
    executed = rollouts if execute else None
    return Asking(
        ideator=ideator, rollouts=executed, help_state=rollouts.help_state, seed=0, idea_s=9.0
    )


SOURCE = Source(ideator="x", options={}, seed=0)


async def test_a_kill_loses_nothing_that_was_written(tmp_path):
    file, known, heard = tmp_path / "ideas.jsonl", cards(5), []
    rollouts = MadeRollouts(known)
    says = Says(lambda state: Proposal(idea("Use pca.")))
    arguments = (known, 2, 3, file, SOURCE)
    whole = await gathered(asking(rollouts, says), *arguments, lambda *each: heard.append(each))
    assert [each[1:] for each in heard] == [(number, 10) for number in range(1, 11)]
    lines = file.read_bytes().split(b"\n")
    file.write_bytes(b"\n".join(lines[:5]) + b"\n" + lines[5][:20])  # four answers, and a half
    says.seeds.clear()
    again = await gathered(asking(rollouts, says), *arguments, lambda *each: None)
    assert (len(says.seeds), again) == (6, whole)
    assert len(set(says.seeds)) == 6


async def test_what_broke_is_asked_again(tmp_path):
    Sometimes.calls = 0
    known, notes = cards(2), []
    arguments = (known, 2, 1, tmp_path / "ideas.jsonl", SOURCE)
    rollouts = MadeRollouts(known)
    for _ in range(4):
        heard = []
        notes = await gathered(
            asking(rollouts, Sometimes()),
            *arguments,
            lambda note, *_, said=heard: said.append(note),
        )
        if heard[0].broken:
            assert "the server is gone" in heard[0].broken
    assert all(note.proposal and note.proposal.idea for note in notes)


async def test_ideas_are_executed_only_once_and_later_if_need_be(tmp_path):
    known = cards(3)
    rollouts, file = MadeRollouts(known), tmp_path / "ideas.jsonl"
    says = Says(lambda state: Proposal(idea("Use gradient boosting.")))
    arguments = (known, 4, 2, file, SOURCE, lambda *each: None)
    await gathered(asking(rollouts, says), *arguments)
    assert rollouts.jobs == []
    notes = await gathered(asking(rollouts, says, execute=True), *arguments)
    assert (len(says.seeds), len(rollouts.jobs)) == (12, 12)
    assert {note.reward for note in notes} == {0.0, 1.0}
    await gathered(asking(rollouts, says, execute=True), *arguments)
    assert len(rollouts.jobs) == 12


async def test_a_broken_runtime_is_no_reward(tmp_path):
    known = cards(1)
    says = Says(lambda state: Proposal(idea(BREAKS)))
    rollouts = MadeRollouts(known)
    arguments = (known, 1, 1, tmp_path / "ideas.jsonl", SOURCE, lambda *each: None)
    (note,) = await gathered(asking(rollouts, says, execute=True), *arguments)
    assert (note.reward, "the sandbox is gone" in note.broken) == (None, True)


async def test_ideas_of_somebody_else_are_not_taken(tmp_path):
    known = cards(1)
    says = Says(lambda state: Proposal(idea("Use pca.")))
    file = tmp_path / "ideas.jsonl"
    await gathered(asking(MadeRollouts(known), says), known, 1, 1, file, SOURCE, lambda *each: None)
    other = msgspec.structs.replace(SOURCE, ideator="y")
    with pytest.raises(UsageError, match="ideas of x, seed 0; now ideas of y"):
        await gathered(
            asking(MadeRollouts(known), says), known, 1, 1, file, other, lambda *each: None
        )
    file.write_text("my diary")
    with pytest.raises(UsageError, match="holds no ideas"):
        await gathered(
            asking(MadeRollouts(known), says), known, 1, 1, file, SOURCE, lambda *each: None
        )
    assert file.read_text() == "my diary"


# ----------------------------------------------------------------------------------- shortened


def test_every_operation_keeps_its_meaning(states):
    reading = read(states[0])
    assert {hint.operation for hint in HINTS} == OPERATIONS.keys()
    cut = 0
    for name in OPERATIONS:
        whole = Idea(analysis(reading), action((name,), reading), "Because. And so on.")
        short = shortened(whole, gist)
        assert well_formed(short)
        assert (gist(short), short.rationale) == (gist(whole), "Because.")
        assert short.action == OPERATIONS[name].action
        cut += "Columns" in whole.action
    assert cut > 2


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Use pca. Columns: `a. b`, `c` and 3 more. Keep everything else as it is.", "Use pca."),
        ("Use pca. Columns: only the good ones.", "Use pca. Columns: only the good ones."),
        ("Keep everything else as it is.", "Keep everything else as it is."),
    ],
)
def test_only_lists_of_columns_are_left_out(text, left):
    assert shortened(idea(text)).action == left


def test_nothing_is_left_out_that_somebody_heeds():
    whole = idea("Use pca. Columns: `a`.")
    assert shortened(whole, lambda one: one.action) == whole
    back = Idea("Revert to #3: it was 1.5 better. So there.", "Use pca.", "r")
    assert shortened(back, gist).analysis == "Revert to #3: it was 1.5 better."


# --------------------------------------------------------------------------------- what is learnt


def test_rows_of_other_lengths_change_no_loss(tiny):
    model = Transformers(str(tiny)).model()
    rows = [Example("s", [5] * size, list(range(9, 9 + size))) for size in (3, 30, 7, 11)]
    tokens = sum(len(row.answer) for row in rows)
    alone = sum(len(row.answer) * mean_loss(model, [row], 1) for row in rows) / tokens
    assert mean_loss(model, rows, 4) == pytest.approx(alone, rel=1e-4)
    assert mean_loss(model, [], 4) is None


def test_only_answers_count(tiny):
    """The loss of an answer is the mean of what the model gives its tokens, one by one."""
    model = Transformers(str(tiny)).model()
    prompt, answer = [11, 12, 13], [40, 50]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([prompt + answer])).logits[0].log_softmax(-1)
    expected = -(logits[2, 40] + logits[3, 50]).item() / 2
    assert mean_loss(model, [Example("s", prompt, answer)], 1) == pytest.approx(expected, rel=1e-4)


async def test_a_prompt_is_what_is_served(tiny, states, monkeypatch):
    read_by_model = []

    def noting(self, messages, options, stopped):
        read_by_model.append(prompt_tokens(self.template, messages))
        raise RuntimeError("that is enough")

    monkeypatch.setattr(Transformers, "_answer", noting)
    endpoint = Transformers(str(tiny))
    ideator = PromptedIdeator(f"hf:{tiny}")
    with pytest.raises(Exception, match="that is enough"):
        await ideator.propose(states[0])
    await ideator.aclose()
    room = room_of(endpoint.context_tokens, None)
    assert fitting_prompt(endpoint.template, states[0], room) == read_by_model[0]


def test_states_are_held_out_whole():
    names = [f"s{number}" for number in range(30)]
    held = held_out_of(names, 0.1, seed=0)
    assert (len(held), held) == (3, held_out_of(names[::-1], 0.1, seed=0))
    assert held != held_out_of(names, 0.1, seed=1)
    assert len(held_out_of(names[:2], 0.01, seed=0)) == 1
    assert not held_out_of(names, 0.0, seed=0)
    assert not held_out_of(names[:1], 0.5, seed=0)


def test_only_what_can_be_learnt_is_kept_and_the_rest_is_counted(tiny, states):
    endpoint = Transformers(str(tiny))
    good, other = idea("Use pca."), idea("Use ratios.")
    lines = [
        (None, None),  # the ideator broke
        (Proposal(None, "nothing left"), None),
        (Proposal(None, "no tags", malformed=True), None),
        (Proposal(Idea("Refine: it stalls.", "", "r")), 1.0),
        (Proposal(Idea("Revert to #9: it was better.", "Use pca.", "r")), 1.0),
        (Proposal(good), 1.0),
        (Proposal(good), 1.0),  # once more
        (Proposal(idea("Use pca. " * 99)), 1.0),
        (Proposal(other), 0.0),
        (Proposal(other), None),  # the runtime broke
    ]
    notes = [
        Note(state="a", number=number, task="t", proposal=proposal, reward=reward)
        for number, (proposal, reward) in enumerate(lines)
    ]
    counts = {}
    for which in ("all", "worked"):
        reader = Reader(
            endpoint=endpoint,
            room=room_of(endpoint.context_tokens, None),
            form="tags",
            which=which,
            gists=None,
        )
        examples, counts[which] = reader.read(notes, {"a": states[0]})
        learnt = [endpoint.decode(example.answer) for example in examples]
        assert learnt == [answer_text(good), *([answer_text(other)] if which == "all" else [])]
    rest = {"asked": 10, "declined": 1, "malformed": 3, "too_long": 1}
    assert counts["worked"] == Ideas(failed=2, worthless=1, equal=1, kept=1, **rest)
    assert counts["all"] == Ideas(failed=1, worthless=0, equal=2, kept=2, **rest)


@pytest.mark.slow
def test_only_ideas_that_worked_are_learnt(tmp_path, monkeypatch):
    """Sessions, executions and a model, all of them real."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    store, collect = tmp_path / "s.db", ("--ideator", "null", "--sandbox", "local", "--steps", "3")
    agent = ("--implementer", "tests.rl.rollout_agents:DoesAsTold", "--set", "preload=[]")
    task = str(write_task(tmp_path / "twice"))
    with pytest.raises(SystemExit) as ended:
        main(["collect", "--task", task, *collect, *agent, "--out", str(store)])
    assert not ended.value.code
    with StateStore(store) as opened:
        prompt = messages_of(opened.help_state(opened.cards()[0].id), 768)
    texts = [message.text for message in prompt] + [solves(factor) for factor in FACTORS] * 5
    told = []
    warmed = warm_up(
        WarmUpConfig(
            states=str(store),
            model=str(make_tiny(tmp_path / "tiny", texts, layers=1, hidden=64)),
            out=str(tmp_path / "W"),
            ideas_from=f"{ME}:Factors",
            ideas=6,
            which="worked",
            epochs=1,
            workers=2,
        ),
        told.append,
    )
    assert [each.note for each in told if each.note] == []
    assert warmed.ideas.kept == 1
    assert warmed.ideas.worthless > 0
    assert warmed.ideas.kept + warmed.ideas.worthless + warmed.ideas.equal == 6
    rewards = {
        (note.proposal.idea.action, note.reward)
        for line in (tmp_path / "W" / IDEAS).read_bytes().splitlines()[1:]
        if (note := msgspec.json.decode(line, type=Note)).proposal
    }
    assert rewards == {(solves(FACTORS[0]), 1.0), (solves(FACTORS[1]), 0.0)}


# -------------------------------------------------------------------------------------- refused


def test_what_can_not_be_done_is_one_line(config, tmp_path):
    with pytest.raises(
        UsageError, match=r"nothing to learn from \(.*declined 96.*\); ask for more"
    ):
        warm_up(config(ideas_from=f"{ME}:{Nobody.__name__}"))
    with pytest.raises(UsageError, match="unknown task of the help states 'tinny'; did you mean"):
        warm_up(config(tasks=("tinny",)))
    with pytest.raises(UsageError, match="no store of help states"):
        warm_up(config(states=str(tmp_path / "gone.db")))
    (tmp_path / "W").mkdir()
    with pytest.raises(UsageError, match="there already"):
        warm_up(config())


def test_ideas_too_long_for_the_model_are_counted(config):
    with pytest.raises(UsageError, match=r"too long \d+.*take a larger model, or short ideas"):
        warm_up(config(ideas_from="offline", ideas=1, context_tokens=280))


def test_a_config_is_read_back(config, tmp_path):
    file = tmp_path / "warm_up.yaml"
    file.write_text(dump_config(config(which="worked", tasks=("tiny",))))
    assert load_config(WarmUpConfig, file) == config(which="worked", tasks=("tiny",))
