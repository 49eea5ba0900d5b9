"""What `PatientModel` makes of an endpoint that fails in every way."""

from __future__ import annotations

import asyncio
import random
import string
import time
from dataclasses import dataclass, field

import pytest

from mle_ideator.chat.calls import CallFailed, Patience, PatientModel, most_tokens
from mle_ideator.chat.prices import Price, usage_of
from mle_ideator.errors import AgentError, ContextOverflow, OutOfBudget
from mle_ideator.messages import CallOptions, Completion, Message
from mle_ideator.types import UNKNOWN_USAGE, Usage

ASK = (Message("user", "Hello?"),)
PRICE = Price(input=1.0, output=10.0)
QUICK = Patience(tries=5, time_s=5.0, first_wait_s=0.01)
ANSWER = Completion(
    text="Hi.",
    finish_reason="stop",
    usage=usage_of(PRICE, input_tokens=100, output_tokens=10),
)


@dataclass
class Endpoint:
    """Answers what it is told to, then well."""

    will: list[CallFailed | Completion] = field(default_factory=list)
    price: Price | None = PRICE
    name: str = "fake:m"
    context_tokens: int | None = None
    takes_s: float = 0.0
    sent: list[CallOptions] = field(default_factory=list)

    async def send(self, messages, options):
        self.sent.append(options)
        await asyncio.sleep(self.takes_s)
        result = self.will.pop(0) if self.will else ANSWER
        if isinstance(result, CallFailed):
            raise result
        return result

    async def aclose(self):
        pass


def patient(*will, patience=QUICK, **more):
    return PatientModel(Endpoint(list(will), **more), patience)


def broken(**more):
    return CallFailed("broken", "it broke", **more)


# ------------------------------------------------------------------------------------- money


async def test_a_call_that_could_pass_the_cap_is_not_sent():
    model = patient()
    with pytest.raises(OutOfBudget, match=r"could cost \$0\.08.*\$0\.0500 is left"):
        await model.complete(ASK, CallOptions(max_tokens=8192, max_cost_usd=0.05))
    assert model.endpoint.sent == []


async def test_a_call_within_the_cap_is_sent():
    completion = await patient().complete(ASK, CallOptions(max_tokens=1000, max_cost_usd=0.05))
    assert completion.usage.cost_usd == pytest.approx((100 * 1 + 10 * 10) / 1e6)


async def test_the_cap_covers_tries_that_may_be_charged():
    """Each try could cost a little over one cent: the third would pass the cap."""
    model = patient(*[broken(billed=True)] * 9)
    with pytest.raises(OutOfBudget):
        await model.complete(ASK, CallOptions(max_tokens=1000, max_cost_usd=0.03))
    assert len(model.endpoint.sent) == 2


async def test_tries_that_cost_nothing_do_not_use_up_the_cap():
    model = patient(*[broken()] * 4)
    completion = await model.complete(ASK, CallOptions(max_tokens=1000, max_cost_usd=0.011))
    assert len(model.endpoint.sent) == 5
    assert completion.usage.calls == 1


async def test_a_lost_try_is_counted_with_its_bound():
    completion = await patient(broken(billed=True)).complete(ASK, CallOptions(max_tokens=1000))
    usage = completion.usage
    assert usage.calls == 2
    assert usage.input_tokens is None
    assert usage.cost_usd is None
    assert 0.01 < usage.at_most_usd < 0.02


async def test_a_lost_try_is_counted_exactly_where_the_provider_told():
    lost = usage_of(PRICE, input_tokens=1000, output_tokens=0)
    completion = await patient(broken(billed=True, usage=lost)).complete(ASK)
    assert completion.usage.calls == 2
    assert completion.usage.input_tokens == 1100
    assert completion.usage.cost_usd == pytest.approx(0.001 + 0.0002)


@pytest.mark.parametrize(
    ("last", "kind"),
    [("wrong", AgentError), ("overflow", ContextOverflow), ("broken", AgentError)],
)
async def test_what_a_call_may_cost_that_fails_in_the_end_is_told(last, kind):
    told = usage_of(PRICE, input_tokens=1000, output_tokens=0)
    lost = broken(billed=True, usage=told)
    model = patient(lost, broken(), lost, *[CallFailed(last, "it ends")] * 9)
    with pytest.raises(kind) as caught:
        await model.complete(ASK)
    usage = caught.value.usage
    assert (usage.calls, usage.input_tokens) == (2, 2000)
    assert usage.cost_usd == pytest.approx(0.002)
    assert usage.waited_s > 0


async def test_what_the_cap_stopped_after_a_lost_try_is_told():
    model = patient(*[broken(billed=True)] * 9)
    with pytest.raises(OutOfBudget) as caught:
        await model.complete(ASK, CallOptions(max_tokens=1000, max_cost_usd=0.03))
    assert caught.value.usage.calls == 2
    assert 0.02 < caught.value.usage.at_most_usd <= 0.03


async def test_an_unknown_cost_is_bounded():
    untold = Completion(text="Hi.", finish_reason="stop", usage=UNKNOWN_USAGE)
    usage = (await patient(untold).complete(ASK, CallOptions(max_tokens=1000))).usage
    assert usage.cost_usd is None
    assert 0.01 < usage.at_most_usd < 0.02


async def test_no_price_no_cap():
    model = patient(price=None)
    assert not model.priced
    with pytest.raises(AgentError, match=r"price of fake:m is not known.*MLE_IDEATOR_PRICES"):
        await model.complete(ASK, CallOptions(max_cost_usd=5.0))
    assert model.endpoint.sent == []
    assert (await model.complete(ASK)).usage.at_most_usd is not None


async def test_the_bound_grows_with_what_is_sent():
    prose, digits = "word " * 1000, "31415 " * 1000
    assert most_tokens(digits.encode()) > most_tokens(prose.encode()) >= 2500
    assert most_tokens("漢字".encode()) >= 6


def test_the_bound_holds_for_letters_at_random():
    """A real tokenizer makes 134,549 tokens of 180,000 such letters in lines of 60."""
    letters = random.Random(0).choices(string.ascii_letters, k=180_000)
    lines = ["".join(letters[start : start + 60]) for start in range(0, 180_000, 60)]
    assert 134_549 < most_tokens("\n".join(lines).encode()) < 140_000


# ----------------------------------------------------------------------------------- options


def refused(option):
    return CallFailed("refused_option", f"{option} is not supported", option=option)


async def test_refused_options_are_left_out_from_then_on():
    model = patient(refused("temperature"), refused("stop"))
    options = CallOptions(temperature=0.5, stop=("END",), seed=7)
    for _ in range(2):
        completion = await model.complete(ASK, options)
        assert completion.dropped == ("stop", "temperature")
    sent = model.endpoint.sent
    assert [s.temperature for s in sent] == [0.5, None, None, None]
    assert [s.stop for s in sent] == [("END",), ("END",), (), ()]
    assert {s.seed for s in sent} == {7}
    assert (await model.complete(ASK)).dropped == ()


async def test_refusing_what_was_not_sent_ends_the_call():
    model = patient(*[refused("temperature")] * 9)
    with pytest.raises(AgentError, match="temperature is not supported"):
        await model.complete(ASK, CallOptions(temperature=0.5))
    assert len(model.endpoint.sent) == 2


async def test_the_limit_is_never_dropped():
    with pytest.raises(AgentError, match="max_tokens is not supported"):
        await patient(refused("max_tokens")).complete(ASK, CallOptions(max_tokens=100))


async def test_dropping_options_uses_up_no_tries():
    model = patient(refused("temperature"), patience=Patience(tries=1))
    assert (await model.complete(ASK, CallOptions(temperature=0.5))).text == "Hi."


async def test_adapting_is_tried_again_at_once_but_not_for_ever():
    adapted = CallFailed("adapted", "another way")
    start = time.monotonic()
    patience = Patience(tries=3, first_wait_s=60.0)
    assert (await patient(adapted, adapted, patience=patience).complete(ASK)).text == "Hi."
    assert time.monotonic() - start < 1
    with pytest.raises(AgentError, match="3 times"):
        await patient(*[adapted] * 9, patience=patience).complete(ASK)


async def test_the_answer_leaves_room_for_the_input():
    model = patient(context_tokens=2048)
    await model.complete(ASK, CallOptions(max_tokens=8192))
    await model.complete(ASK, CallOptions(max_tokens=500))
    assert [s.max_tokens for s in model.endpoint.sent] == [1024, 500]


# ----------------------------------------------------------------------------------- waiting


async def test_waits_grow_and_vary():
    model = patient(patience=Patience(first_wait_s=1.0, longest_wait_s=5.0))
    pauses = [[model._pause(broken(), n) for n in (1, 2, 3, 9)] for _ in range(50)]
    for place, longest in enumerate((1.0, 2.0, 4.0, 5.0)):
        waits = [pause[place] for pause in pauses]
        assert longest / 2 <= min(waits) < max(waits) <= longest


async def test_retry_after_is_waited_for():
    start = time.monotonic()
    completion = await patient(broken(retry_after_s=0.3)).complete(ASK)
    assert 0.3 <= time.monotonic() - start < 2
    assert completion.usage.waited_s >= 0.3


async def test_nothing_is_waited_for_beyond_the_patience():
    start = time.monotonic()
    model = patient(*[CallFailed("busy", "slow down", retry_after_s=60.0)] * 9)
    with pytest.raises(AgentError, match="failed once: slow down; it asks to wait 60 s"):
        await model.complete(ASK)
    assert time.monotonic() - start < 1


async def test_the_patience_ends_by_time():
    model = patient(*[broken()] * 99, patience=Patience(tries=99, time_s=0.3, first_wait_s=0.05))
    start = time.monotonic()
    with pytest.raises(AgentError, match="it broke"):
        await model.complete(ASK)
    assert time.monotonic() - start < 2
    assert 2 <= len(model.endpoint.sent) < 20


async def test_a_try_that_never_ends_is_given_up():
    model = patient(takes_s=60.0, patience=Patience(tries=2, try_time_s=0.05, first_wait_s=0.01))
    with pytest.raises(AgentError, match=r"2 times, the last time: no whole answer within 0\.05 s"):
        await model.complete(ASK)


async def cancelled(model):
    """The error with which a call ends that is broken off after a moment."""
    task = asyncio.create_task(model.complete(ASK, CallOptions(max_tokens=1000)))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    return caught.value


async def test_cancelled_while_waiting():
    model = patient(broken(retry_after_s=4.0))
    error = await cancelled(model)
    assert len(model.endpoint.sent) == 1
    assert (error.usage.calls, error.usage.at_most_usd) == (0, 0.0)
    assert error.detail == "it broke"


async def test_cancelled_while_a_try_runs_it_may_cost_its_bound():
    error = await cancelled(patient(takes_s=60.0))
    usage = error.usage
    assert (usage.calls, usage.input_tokens, usage.cost_usd) == (1, None, None)
    assert 0.01 < usage.at_most_usd < 0.011
    assert 0.1 <= usage.waited_s < 2
    assert error.detail == "no answer yet after 0 s"


async def test_cancelled_after_lost_tries_all_of_them_count():
    told = usage_of(PRICE, input_tokens=1000, output_tokens=0)
    model = patient(broken(billed=True, usage=told), takes_s=0.06)
    error = await cancelled(model)
    assert len(model.endpoint.sent) == 2
    assert error.usage.calls == 2
    assert 0.011 < error.usage.at_most_usd < 0.012
    assert error.detail == "it broke"


async def test_the_caller_s_time_limit_gets_the_same_exception():
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(0.05):
            await patient(takes_s=60.0).complete(ASK)
    assert caught.value.__cause__.usage.calls == 1


async def test_what_passes_soon_or_never_is_not_tried_for_long():
    soon = CallFailed("broken", "no connection", passes_within_s=0.2)
    model = patient(*[soon] * 99, patience=Patience(tries=99, first_wait_s=0.05))
    start = time.monotonic()
    with pytest.raises(AgentError, match="no connection"):
        await model.complete(ASK)
    assert time.monotonic() - start < 1
    assert 2 <= len(model.endpoint.sent) <= 6


# ------------------------------------------------------------------------------------- the rest


async def test_what_is_wrong_is_tried_once():
    model = patient(CallFailed("wrong", "no such model"))
    with pytest.raises(AgentError, match="fake:m: no such model"):
        await model.complete(ASK)
    assert len(model.endpoint.sent) == 1


async def test_overflow_is_not_tried_again_unchanged():
    model = patient(CallFailed("overflow", "too long"))
    with pytest.raises(ContextOverflow, match="fake:m: too long"):
        await model.complete(ASK)
    assert len(model.endpoint.sent) == 1


async def test_usage_without_failures_is_the_endpoint_s():
    usage = (await patient().complete(ASK)).usage
    assert usage == Usage(1, 100, 0, 10, 0, 0.0002, 0.0002, usage.waited_s)
