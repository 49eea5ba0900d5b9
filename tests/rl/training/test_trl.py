"""TRL's trainer on the ground: what it is made for, its settings, what a step does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import pytest

pytest.importorskip("trl")

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen3Config, Qwen3ForCausalLM
from trl import GRPOTrainer

from mle_ideator.chat.hf import hf
from mle_ideator.chat.templates import ChatTemplate
from mle_ideator.errors import SandboxError, UsageError
from mle_ideator.idea_form import STOP
from mle_ideator.messages import CallOptions, Message
from mle_ideator.rl.reward import REWARDS, IdeaOutcome
from mle_ideator.rl.training.advantages import advantages, informative
from mle_ideator.rl.training.answers import Reader, stop_token
from mle_ideator.rl.training.ground import Ground
from mle_ideator.rl.training.listening import Listener
from mle_ideator.rl.training.trl import contract
from mle_ideator.rl.training.trl.sampling import fullest, taught
from mle_ideator.rl.training.trl.settings import grpo_config, states_of, updates_of
from mle_ideator.rl.training.trl.trainer import GroundTrainer
from mle_ideator.rl.values import RolloutJob, RolloutResult, result_of
from mle_ideator.types import Proposal
from tests.rl.training.letters import Letters, config, tiny
from tests.rl.training.trl_driver import trained

pytestmark = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::UserWarning:torch.*", "ignore::DeprecationWarning"
)
QUIET = {"logs": {"to": []}}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny(tmp_path_factory.mktemp("made") / "model")


@dataclass
class Heard(Listener):
    """All steps, and all that was said."""

    steps: list[dict[str, float]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def step(self, step: int, steps: int, metrics: Mapping[str, float]) -> None:
        self.steps.append({"step": step, **metrics})

    def said(self, text: str) -> None:
        self.lines.append(text)


# ----------------------------------------------------------------------------------- the contract


def test_this_trl_is_the_one_that_is_meant() -> None:
    assert contract.broken_promises(GRPOTrainer) == []
    contract.check_trl()


def test_another_version_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for other in ("1.17.0", "1.160.0", "2.0"):
        monkeypatch.setattr(contract, "version", lambda _, other=other: other)
        with pytest.raises(UsageError, match=rf"TRL {other} is installed.*pip install 'trl==1\.16"):
            contract.check_trl()


def test_a_method_that_is_not_what_it_was_is_named() -> None:
    class Other(GRPOTrainer):
        def _calculate_rewards(self, inputs: Any, answers: Any) -> Any: ...

    assert contract.broken_promises(Other) == [
        "_calculate_rewards takes inputs, answers, "
        "not inputs, prompts, completions, completion_ids_list"
    ]
    assert len(contract.broken_promises(object)) == len(contract.METHODS)


def test_call_order_and_no_lag(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What TRL calls, in which order; and that each draw knows all that was observed before."""
    called: list[str] = []

    def noting(owner: type[Any], name: str) -> None:
        method = getattr(owner, name)

        def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
            called.append(name)
            return method(self, *args, **kwargs)

        monkeypatch.setattr(owner, name, noted)

    for name in contract.METHODS:
        noting(GroundTrainer, name)
    for name in ("draw", "submit", "observe"):
        noting(Ground, name)
    trained(Letters(), config(steps=2, **QUIET), tmp_path, model)
    start = called.index("_generate_and_score_completions")
    step = [
        "_generate_and_score_completions",
        "draw",
        "_tokenize_prompts",
        "_generate_single_turn",
        *["submit"] * 4,
        "_calculate_rewards",
        "observe",
        "_get_per_token_logps_and_entropies",
        "log",
    ]
    end = ["_save_checkpoint", "log"]
    assert called[start:] == [*step, *step, *end]


# ----------------------------------------------------------------------------------- the settings


def made(folder: Path, **changes: object) -> Any:
    return grpo_config(config(**changes), 12, folder)


def test_what_the_config_says_is_what_trl_is_told(tmp_path: Path) -> None:
    found = made(
        tmp_path,
        steps=10,
        writing={"ideas_per_state": 6, "at_once": 8, "temperature": 0.7},
        objective={"states_per_step": 4, "epochs": 2, "clip": 0.1, "kl": 0.03, "scale": "none"},
        checkpoints={"every": 5},
        trl={"loss_type": "dr_grpo", "top_k": 7},
    )
    assert (found.loss_type, found.top_k, found.temperature) == ("dr_grpo", 7, 0.7)
    assert (found.beta, found.epsilon, found.scale_rewards) == (0.03, 0.1, "none")
    assert (found.per_device_train_batch_size, found.gradient_accumulation_steps) == (8, 3)
    assert (states_of(found), updates_of(found)) == (4, 2)
    assert (found.max_steps, found.save_steps, found.logging_steps) == (20, 10, 2)
    assert found.ignore_data_skip is False
    assert found.ddp_timeout > config().rollouts.limit_s
    assert found.report_to == []


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"trl": {"los_type": "dapo"}}, "unknown setting of TRL 'los_type'; did you mean 'loss_"),
        ({"trl": {"beta": 0.1}}, "trl.beta can not be set; set objective.kl."),
        ({"trl": {"ignore_data_skip": True}}, "resumed exactly"),
        ({"trl": {"mask_truncated_completions": True}}, "earns −1"),
        ({"trl": {"ddp_timeout": 60}}, "longer than a rollout may take"),
        ({"trl": {"gradient_accumulation_steps": 2, "steps_per_generation": 3}}, "between two"),
        ({"trl": {"per_device_train_batch_size": 3}}, "trl: .*divisible"),
        ({"trl": {"deepspeed": "nowhere.json"}}, "trl: "),
    ],
)  # fmt: skip
def test_what_can_not_be_is_refused_in_one_line(
    tmp_path: Path, changes: dict[str, Any], line: str
) -> None:
    with pytest.raises(UsageError, match=line) as refusal:
        made(tmp_path, **changes)
    assert "\n" not in str(refusal.value)


def test_answers_that_can_not_be_shared_evenly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(UsageError, match="3 processes can not share 32 answers"):
        made(tmp_path)


# ------------------------------------------------------------------------------------ the answers


def test_an_answer_ends_where_a_server_stops(model: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(model)
    end = tokenizer.eos_token_id
    reader = Reader(tokenizer, [end])
    said = tokenizer.encode(f"<rationale>e{STOP}", add_special_tokens=False)
    more = tokenizer.encode(" and so on", add_special_tokens=False)
    assert reader.length([*said, *more, end]) == len(said)
    assert reader.length([*said, end]) == len(said) + 1
    assert reader.length(more) == len(more)
    assert reader.answer([*said, end]).text == "<rationale>e"
    assert not reader.answer(said).cut
    assert not reader.answer([*more, end]).cut
    assert reader.answer(more).cut
    assert stop_token(tokenizer) == said[-1]


def test_what_is_learnt_from() -> None:
    rewards = [1.0, 0.0, None, 0.0, 0.0, None, None, None, 1.0, None, None, 1.0]
    kept = [True, True, False, *[False] * 9]
    assert taught(rewards, 3) == kept
    assert taught([1.0, 1.0, -1.0, 0.0], 2) == [False, False, True, True]


def test_groups_that_teach_come_first() -> None:
    def batch(first: int, width: int) -> dict[str, torch.Tensor]:
        rows = torch.arange(first, first + 4)
        return {
            "prompt_ids": rows[:, None].repeat(1, width),
            "completion_mask": torch.ones(4, width, dtype=torch.long),
            "advantages": rows.float(),
            "num_items_in_batch": torch.tensor(9),
        }

    marks = [[False, False, True, True], [True, False, True, True]]
    found = fullest([batch(0, 2), batch(4, 3)], marks, 2, pad_token=99)
    assert found["advantages"].tolist() == [2, 3, 4, 5]
    assert found["prompt_ids"].tolist() == [[99, 2, 2], [99, 3, 3], [4, 4, 4], [5, 5, 5]]
    assert found["completion_mask"].tolist() == [[1, 1, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1]]
    few = fullest([batch(0, 2), batch(4, 3)], [[False] * 4, [False, False, True, True]], 2, 99)
    assert few["advantages"].tolist() == [6, 7, 0, 1]


# ------------------------------------------------------------------------------------ the rewards


@dataclass
class Scripted(Letters):
    """Each answer earns what is next in the script; `hang` takes its time and then is a timeout;
    `broken` and `lost` are raised."""

    script: tuple[str, ...] = ()
    asked: int = 0

    async def judged(self, state: str, answer: str, *, cut: bool = False) -> RolloutResult:
        said = self.script[self.asked % len(self.script)]
        self.asked += 1
        if said == "hang":
            await asyncio.sleep(0.5)
        if said == "broken":
            raise SandboxError("the sandbox is gone")
        outcome: IdeaOutcome = "timeout" if said == "hang" else said  # type: ignore[assignment]
        return result_of(RolloutJob(state=state, proposal=Proposal(None)), outcome)


def expected(script: tuple[str, ...]) -> list[float | None]:
    known: dict[str, float | None] = {**REWARDS, "hang": 0.0, "broken": None}
    return [known[said] for said in script]


@pytest.mark.parametrize("scale", ["group", "none"])
def test_rewards_of_every_kind(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scale: str,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    script = (
        "improved", "hang", "infra_error", "invalid_format",
        "broken", "infra_error", "broken", "infra_error",
        "not_improved", "exec_failed", "hang", "not_improved",
        "broken", "improved", "infra_error", "broken",
        "improved", "not_improved", "improved", "broken",
    )  # fmt: skip
    rows: list[dict[str, torch.Tensor]] = []
    learnt = GroundTrainer._learnt_from
    monkeypatch.setattr(
        GroundTrainer,
        "_learnt_from",
        lambda self, *args: rows.append(learnt(self, *args)) or rows[-1],
    )
    letters, heard = Scripted(states=8, script=script), Heard()
    settings = config(
        steps=1, objective={"states_per_step": 5, "scale": scale},
        writing={"ideas_per_state": 4}, **QUIET,
    )  # fmt: skip
    trained(letters, settings, tmp_path, model, heard)
    rewards = expected(script)
    groups = [rewards[start : start + 4] for start in range(0, 20, 4)]
    wanted = [gain for group in groups for gain in advantages(group, scale)]  # type: ignore[arg-type]
    assert rows[0]["advantages"].tolist() == pytest.approx(wanted, abs=1e-3)
    counted = rows[0]["tool_mask"].sum(1).bool().tolist()
    assert counted == [
        informative(group) and reward is not None for group in groups for reward in group
    ]
    assert int(rows[0]["num_items_in_batch"]) == int(rows[0]["tool_mask"].sum())
    (metrics,) = heard.steps
    assert metrics["masked_rate"] == pytest.approx(9 / 20)
    assert metrics["reward"] == pytest.approx((1 - 1 + 1 + 1 + 1) / 11)
    assert metrics["wait_s"] >= 0.3
    assert metrics["entropy"] > 1
    assert "returned None" not in caplog.text


def test_nothing_is_learnt_from_nothing(model: Path, tmp_path: Path) -> None:
    """All masked: the run goes on, and the weights stay."""
    heard = Heard()
    trained(Scripted(script=("infra_error",)), config(steps=2, **QUIET), tmp_path, model, heard)
    assert [step["masked_rate"] for step in heard.steps] == [1.0, 1.0]
    assert heard.steps[0]["entropy"] > 1
    assert weights(tmp_path / "checkpoint") == weights(model)


def test_groups_without_variance_are_drawn_again(model: Path, tmp_path: Path) -> None:
    """Of 4 groups one has variance; 16 are drawn for a batch of 4 that all have."""
    uniform = ("improved",) * 4
    script = (*uniform, "improved", "not_improved", "improved", "improved", *uniform, *uniform)
    letters, heard = Scripted(states=30, script=script), Heard()
    settings = config(
        steps=1, objective={"states_per_step": 4, "zero_variance": "resample"},
        writing={"ideas_per_state": 4}, **QUIET,
    )  # fmt: skip
    trained(letters, settings, tmp_path, model, heard)
    assert letters.asked == 4 * 16
    assert heard.steps[0]["zero_variance"] == pytest.approx(0.75)


# -------------------------------------------------------------------------------------- whole runs


def weights(folder: Path) -> dict[str, list[float]]:
    found = AutoModelForCausalLM.from_pretrained(folder).state_dict()
    return {name: values.flatten().tolist() for name, values in found.items()}


def lasting(step: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in step.items() if not name.endswith("_s")}


@pytest.mark.parametrize(
    "changes",
    [
        {"objective": {"kl": 0.05, "epochs": 2, "states_per_step": 4}},
        pytest.param({"model": {"lora_rank": 4, "context_tokens": 48}}, marks=pytest.mark.slow),
    ],
    ids=["all weights", "adapters"],
)
def test_a_run_that_is_gone_on_with_is_the_run_that_would_have_been(
    model: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    """The same metrics, answers and weights, to the last bit; and what was saved is served."""
    short = config(steps=2, checkpoints={"every": 2}, **changes, **QUIET)
    whole = config(steps=4, checkpoints={"every": 2}, **changes, **QUIET)
    once, twice = Letters(), Letters()
    undisturbed, first, second = Heard(), Heard(), Heard()
    trained(once, whole, tmp_path / "once", model, undisturbed)
    trained(twice, short, tmp_path / "twice", model, first)
    trained(twice, whole, tmp_path / "twice", model, second)
    resumed = first.steps + second.steps
    assert [step["step"] for step in resumed] == [1, 2, 3, 4]
    assert list(map(lasting, resumed)) == list(map(lasting, undisturbed.steps))
    assert twice.judged_texts == once.judged_texts
    assert weights(tmp_path / "once/checkpoint") == weights(tmp_path / "twice/checkpoint")
    assert weights(tmp_path / "once/checkpoint") != weights(model)
    assert not list((tmp_path / "once/checkpoints").glob("*.part"))


async def test_the_checkpoint_serves(model: Path, tmp_path: Path) -> None:
    trained(Letters(), config(steps=1, **QUIET), tmp_path, model)
    served = hf(str(tmp_path / "checkpoint"))
    said = await served.complete([Message("user", "State abcd")], CallOptions(max_tokens=5))
    assert said.usage.output_tokens in range(1, 6)
    assert served.context_tokens == 48
    await served.aclose()


@pytest.mark.parametrize("rank", [0, 8])
def test_a_model_of_the_shape_of_qwen3(model: Path, tmp_path: Path, rank: int) -> None:
    """Grouped queries, normed heads, tied embeddings: two steps, all weights that train move."""
    tokenizer = AutoTokenizer.from_pretrained(model)
    torch.manual_seed(0)
    shape = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=16, max_position_embeddings=48,
        tie_word_embeddings=True, eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    Qwen3ForCausalLM(shape).save_pretrained(tmp_path / "qwen3")
    tokenizer.save_pretrained(tmp_path / "qwen3")
    settings = config(
        steps=2, model={"lora_rank": rank, "context_tokens": 48}, optimiser={"lr": 0.1},
        trl={"gradient_checkpointing": True}, **QUIET,
    )  # fmt: skip
    script = ("improved", "not_improved", "invalid_format")
    trained(Scripted(script=script), settings, tmp_path / "run", tmp_path / "qwen3")
    before, after = weights(tmp_path / "qwen3"), weights(tmp_path / "run/checkpoint")
    still = {name for name in before if before[name] == after[name]}
    assert before.keys() == after.keys()
    assert all(("norm" in name or "embed" in name or "head" in name) for name in still)
    assert rank or not still


def test_a_state_that_can_not_be_read_does_not_end_the_run(model: Path, tmp_path: Path) -> None:
    class Gap(Letters):
        def prompt(self, state: str, share: float = 1.0) -> tuple[Message, ...]:
            if state == self.rollouts.cards()[0].id:
                raise UsageError("its files are gone.")
            return super().prompt(state, share)

    heard, letters = Heard(), Gap()
    ended = trained(letters, config(steps=2, **QUIET), tmp_path, model, heard)
    assert (ended, len(heard.steps)) == ("", 2)


def test_an_interrupt_ends_it_with_a_checkpoint(model: Path, tmp_path: Path) -> None:
    stop, heard, letters = Event(), Heard(), Letters()
    stop.set()
    ended = trained(letters, config(steps=5, **QUIET), tmp_path, model, heard, stop)
    assert (ended, len(heard.steps)) == ("interrupted", 1)
    assert (tmp_path / "checkpoint").resolve().name == "step-000001"


def test_evaluation_keeps_its_own_data(model: Path, tmp_path: Path) -> None:
    """Nothing is drawn for it, and nothing of it is taken up."""
    tokenizer, letters = AutoTokenizer.from_pretrained(model), Letters()
    state = letters.rollouts.cards()[2].id
    row = {"prompt": [{"role": "user", "content": "State abcd"}], "state": state}
    with letters.ground(config()) as ground:
        trainer = GroundTrainer(
            str(model), ground, ChatTemplate(tokenizer, "model"), tokenizer, made(tmp_path),
            eval_dataset=Dataset.from_list([row]),
        )  # fmt: skip
        found = trainer.evaluate()
        assert (ground.buffer.draws, ground.buffer.tallies["observed"]) == (0, 0)
    assert len(letters.judged_texts) == 8
    assert -1 <= found["eval_reward"] <= 1
