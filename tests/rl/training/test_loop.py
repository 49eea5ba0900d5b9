"""The small loop on a ground that a model from scratch can learn at once."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from mle_ideator.errors import RuntimeFailure, UsageError  # noqa: E402
from mle_ideator.messages import Message  # noqa: E402
from mle_ideator.rl.training.loop import Loop  # noqa: E402
from mle_ideator.rl.training.policy import Policy  # noqa: E402
from tests.rl.training.letters import Letters, config, tiny  # noqa: E402


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return tiny(tmp_path_factory.mktemp("model") / "tiny")


def begun(model: Path, ground, settings, seed: int = 0) -> Loop:
    torch.manual_seed(seed)
    policy = Policy(str(model), settings.model, settings.writing)
    reference = policy.frozen() if settings.objective.kl else None
    return Loop(settings, policy, ground, reference)


def weights(loop: Loop) -> list[torch.Tensor]:
    return [weight.detach().clone() for weight in loop.policy.weights]


def told(metrics: dict[str, float]) -> dict[str, float]:
    """What has to come again: all but times."""
    return {name: value for name, value in metrics.items() if not name.endswith("_s")}


@pytest.mark.parametrize("overlap", [True, False])
def test_it_learns(model, overlap):
    settings = config(objective__overlap=overlap)
    with Letters().ground(settings) as ground:
        loop = begun(model, ground, settings)
        rewards = [loop.step()["reward"] for _ in range(45)]
    assert sum(rewards[:5]) / 5 < -0.7
    assert sum(rewards[-5:]) / 5 > 0.1


def test_every_weight_is_moved_and_nothing_else(model):
    settings = config()
    with Letters().ground(settings) as ground:
        loop = begun(model, ground, settings)
        before = weights(loop)
        while not loop.step()["grad_norm"]:
            pass
        moved = [not torch.equal(*pair) for pair in zip(before, weights(loop), strict=True)]
    assert all(moved)


@pytest.mark.parametrize("overlap", [True, False])
def test_a_loop_that_is_gone_on_with_takes_the_same_steps(model, tmp_path, overlap):
    settings = config(objective__overlap=overlap, objective__kl=0.01)
    with Letters().ground(settings) as ground:
        loop = begun(model, ground, settings)
        for _ in range(4):
            loop.step()
        loop.policy.save(tmp_path / "model")
        torch.save(loop.state_dict(), tmp_path / "state.pt")
        buffer = ground.buffer.state_dict()
        expected = [told(loop.step()) for _ in range(5)]
        left = weights(loop)
    with Letters().ground(settings) as ground:
        ground.buffer.load_state_dict(buffer)
        other = begun(tmp_path / "model", ground, settings, seed=99)
        other.reference = begun(model, ground, settings).policy.frozen()
        other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
        assert [told(other.step()) for _ in range(5)] == expected
        assert all(torch.equal(*pair) for pair in zip(left, weights(other), strict=True))


def test_a_step_follows_from_seed_and_answers_alone(model):
    settings = config()
    found = []
    for latency in (0.0, 0.05):
        with Letters(latency_s=latency).ground(settings) as ground:
            loop = begun(model, ground, settings)
            found.append([told(loop.step()) for _ in range(3)])
    assert found[0] == found[1]


def test_writing_goes_on_while_answers_are_executed(model):
    settings = config()
    with Letters(latency_s=0.4).ground(settings) as ground:
        loop = begun(model, ground, settings)
        loop.step()
        wrote, waited = 0.0, 0.0
        for _ in range(3):
            metrics = loop.step()
            wrote, waited = wrote + metrics["generate_s"], waited + metrics["wait_s"]
    assert waited < 3 * 0.4 + 0.3
    assert wrote > 0


class Broken(Letters):
    """The runtime breaks for every answer to the first state, and hangs for none."""

    async def judged(self, state, answer, *, cut=False):
        if state == self.rollouts.cards()[0].id:
            raise RuntimeFailure("the sandbox is gone")
        return await super().judged(state, answer, cut=cut)


def test_what_the_runtime_lost_teaches_nothing_and_blocks_nothing(model):
    settings = config(objective__states_per_step=6)
    said = []
    with Broken().ground(settings) as ground:
        ground._told = said.append
        loop = begun(model, ground, settings)
        masked = [loop.step()["masked_rate"] for _ in range(3)]
    assert max(masked) > 0
    assert all(rate < 1 for rate in masked)
    assert "the sandbox is gone" in said[0]


class Unreadable(Letters):
    """One help state can not be read, and the prompts of another are long at first."""

    def prompt(self, state, share=1.0):
        first, second = (card.id for card in self.rollouts.cards()[:2])
        if state == first:
            raise UsageError("its journal is damaged.")
        return (Message("user", "word " * int((40 if state == second else 2) * share)),)


def test_a_state_that_can_not_be_read_is_left_out_and_a_long_prompt_made_shorter(model):
    settings = config(objective__states_per_step=6)
    ground, said = Unreadable(), []
    first, second = (card.id for card in ground.rollouts.cards()[:2])
    with ground.ground(settings) as opened:
        loop = begun(model, opened, settings)
        opened._fits, opened._told = loop.policy.fits, said.append
        drawn = [prompt for _ in range(4) for prompt in opened.draw(6)]
    assert first not in {prompt.state for prompt in drawn}
    assert "its journal is damaged" in said[0]
    long = next(prompt for prompt in drawn if prompt.state == second)
    assert 4 < len(long.messages[0].text.split()) < 40
    assert len(drawn) == 24


class AllBroken(Letters):
    async def judged(self, state, answer, *, cut=False):
        raise RuntimeFailure("the sandbox is gone")


def test_a_step_without_any_reward_changes_no_weight(model):
    settings = config()
    with AllBroken().ground(settings) as ground:
        loop = begun(model, ground, settings)
        before = weights(loop)
        metrics = loop.step()
        assert (metrics["masked_rate"], metrics["grad_norm"]) == (1.0, 0.0)
        assert all(torch.equal(*pair) for pair in zip(before, weights(loop), strict=True))


class Same(Letters):
    """All answers to the first four states earn the same."""

    async def judged(self, state, answer, *, cut=False):
        hopeless = state in {card.id for card in self.rollouts.cards()[:4]}
        return await super().judged(state, "" if hopeless else answer, cut=cut and not hopeless)


def test_groups_without_variance_are_left_out_or_replaced(model):
    counts = {}
    for choice in ("mask", "resample"):
        settings = config(objective__zero_variance=choice, optimiser__lr=1e-9)
        ground = Same(states=8)
        with ground.ground(settings) as opened:
            loop = begun(model, opened, settings)
            for _ in range(4):
                loop.step()
        counts[choice] = len(ground.judged_texts)
    assert counts["resample"] > counts["mask"]


def test_the_divergence_holds_the_policy_near_the_reference(model):
    far = {}
    for weight in (1e-6, 3.0):
        settings = config(objective__kl=weight)
        with Letters().ground(settings) as ground:
            loop = begun(model, ground, settings)
            far[weight] = max(loop.step()["kl"] for _ in range(25))
    assert 0 <= far[3.0] < far[1e-6]


def test_the_rate_rises_over_the_first_steps(model):
    settings = config(optimiser__warm_up_steps=4, optimiser__lr=1e-3)
    with Letters().ground(settings) as ground:
        loop = begun(model, ground, settings)
        rates = [loop.step()["lr"] for _ in range(5)]
    assert rates == pytest.approx([0.25e-3, 0.5e-3, 0.75e-3, 1e-3, 1e-3])


def test_what_a_policy_wrote_is_as_likely_as_it_then_was(model):
    settings = config()
    torch.manual_seed(1)
    policy = Policy(str(model), settings.model, settings.writing)
    prompts = [Letters().prompt("abcd"), Letters().prompt("x" * 4)]
    (first, second) = policy.write(prompts, 3)
    for written in (*first, *second):
        judged = policy.judge([written])  # alone: neither padding nor neighbours count
        assert int(judged.mask.sum()) == len(written.tokens) == written.answer.tokens
        assert judged.logps[0].tolist() == pytest.approx(written.logps, abs=1e-4)
        assert written.answer.tokens <= policy.room.answer
        assert written.answer.cut == (
            len(written.tokens) == policy.room.answer and written.tokens[-1] not in policy._ends
        )


def test_adapters_are_merged_where_they_are_saved(model, tmp_path):
    pytest.importorskip("peft")
    settings = config(model__lora_rank=2)
    with Letters().ground(settings) as ground:
        loop = begun(model, ground, settings)
        frozen = copy.deepcopy(loop.policy.adapters())
        for _ in range(3):
            loop.step()
        assert any(not torch.equal(frozen[k], v) for k, v in loop.policy.adapters().items())
        loop.policy.save(tmp_path / "model")
        answer = loop.policy.write([Letters().prompt("abcd")], 2)[0][0]
        plain = Policy(str(tmp_path / "model"), config().model, settings.writing)
        assert plain.judge([answer]).logps[0].tolist() == pytest.approx(answer.logps, abs=1e-3)
