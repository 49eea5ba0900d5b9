"""The core that every trainer stands on: help states drawn by the buffer, answers executed, and
what they earned taken up. It knows nothing of models.

Rollouts run in an event loop in a thread of its own, so that a trainer can write the next answers
while the last ones are executed.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import lru_cache
from types import TracebackType
from typing import Any, Self, TypeVar

from mle_ideator.errors import AgentError, MleIdeatorError, RuntimeFailure
from mle_ideator.ideators.prompted.policy import SHRINK, SHRINKS
from mle_ideator.messages import Message
from mle_ideator.rl.buffer.buffer import EvolvingBuffer
from mle_ideator.rl.environments.one_step import OneStep
from mle_ideator.rl.rollouts import broken
from mle_ideator.rl.training import metrics
from mle_ideator.rl.training.values import Answer, Group, Prompt
from mle_ideator.rl.values import RolloutResult

T = TypeVar("T")
_PROMPTS = 4096
"""So many are kept, as states are drawn again."""


class Ground:
    """To be used as a context manager, by one thread. All draws follow from the buffer's state."""

    def __init__(
        self,
        opening: AbstractAsyncContextManager[OneStep],
        buffer: EvolvingBuffer,
        fits: Callable[[Sequence[Message]], bool] = lambda _: True,
        told: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`fits` says whether the policy can read a prompt: the next one is shorter, as when it is
        served. `told` hears of help states that can not be used."""
        self._opening = opening
        self.buffer = buffer
        self._fits, self._told = fits, told
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rollouts", daemon=True)
        self._stack = AsyncExitStack()
        self._running: set[Future[Group]] = set()
        self._prompt = lru_cache(_PROMPTS)(self._rendered)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._steps = self._here(self._stack.enter_async_context(self._opening))
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            for group in list(self._running):
                group.cancel()
            self._here(self._stack.aclose())
        finally:
            self._stop()

    # ------------------------------------------------------------------------- what trainers call

    def draw(self, count: int) -> list[Prompt]:
        """The next help states, as the policy reads them; none only if no state can be used."""
        prompts: list[Prompt] = []
        for _ in range(1 + len(self.buffer)):  # a state that can not be used makes room for others
            drawn = self.buffer.draw(count - len(prompts))
            prompts += [prompt for one in drawn if (prompt := self._usable(one.id, one.task))]
            if len(prompts) == count or not drawn:
                break
        return prompts

    def prompt(self, state: str, task: str) -> Prompt:
        """One help state. Raises `MleIdeatorError` if it can not be read."""
        return self._prompt(state, task)

    def submit(self, state: str, answers: Sequence[Answer]) -> Future[Group]:
        """Execute answers to one help state; returns at once.

        The future never fails: where the runtime broke, the result has no reward.
        """
        group = asyncio.run_coroutine_threadsafe(self._group(state, tuple(answers)), self._loop)
        self._running.add(group)
        group.add_done_callback(self._running.discard)
        return group

    def observe(self, groups: Sequence[Group]) -> None:
        """Take up what groups earned, and the help states that they reached, in this order."""
        cards = self._steps.rollouts
        for group in groups:
            self.buffer.observe(group.state, group.rewards)
            for result in group.results:
                if result.child is not None:
                    self.buffer.add(cards.card(result.child))

    def metrics(self, groups: Sequence[Group]) -> dict[str, float]:
        """Of a step's groups, and of the buffer after it."""
        counts: Callable[[], dict[str, float]] = getattr(self._steps.rollouts, "counts", dict)
        return metrics.of_groups(groups) | metrics.of_buffer(self.buffer.metrics()) | counts()

    # ------------------------------------------------------------------------------ in the thread

    async def _group(self, state: str, answers: tuple[Answer, ...]) -> Group:
        results = await asyncio.gather(*(self._judged(state, answer) for answer in answers))
        return Group(state, answers, tuple(results))

    async def _judged(self, state: str, answer: Answer) -> RolloutResult:
        try:
            return await self._steps.judged(state, answer.text, cut=answer.cut)
        except MleIdeatorError as error:
            self._told(f"help state {state[:12]}: {error}")
            return broken(state, self._steps.seed, RuntimeFailure(str(error)))

    def _usable(self, state: str, task: str) -> Prompt | None:
        try:
            return self._prompt(state, task)
        except MleIdeatorError as error:
            self._told(f"help state {state[:12]} is left out: {error}")
            self.buffer.observe(state, [None])
            return None

    def _rendered(self, state: str, task: str) -> Prompt:
        share = 1.0
        for _ in range(1 + SHRINKS):
            messages = self._steps.prompt(state, share)
            if self._fits(messages):
                return Prompt(state, task, messages)
            share *= SHRINK
        raise AgentError("the model can not read as much as its shortest prompt")

    def _here(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
