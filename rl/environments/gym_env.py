"""A gymnasium environment: the observation is a prompt, the action a raw answer, one step each."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeVar

from mle_ideator.errors import UsageError
from mle_ideator.rl.environments.one_step import OneStep, chat, info_of

try:
    import gymnasium
except ImportError as error:
    raise UsageError(
        f"the gymnasium environment needs the package gymnasium ({error}): "
        "pip install 'mle-ideator[gymnasium]'."
    ) from error

T = TypeVar("T")

_MOST_CHARS = 2_000_000


class AnyText(gymnasium.spaces.Text):
    """Any text: prompts and answers keep to no small set of characters."""

    def __init__(self) -> None:
        super().__init__(max_length=_MOST_CHARS, min_length=0)

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and len(x) <= self.max_length

    def sample(self, *args: Any, **kwargs: Any) -> str:
        """A short text, of no use as an answer."""
        return str(gymnasium.spaces.Text(20, seed=self.np_random).sample())


class IdeaEnv(gymnasium.Env[str, str]):
    """`reset` shows a help state, `step` executes an answer to it once and ends the episode.

    Help states are drawn uniformly, or named: `reset(options={"state": ID})`. The observation is
    the prompt as one text; `info["messages"]` holds it as chat messages, for a chat template. Where
    the runtime broke, nothing is known of the answer: the episode is truncated and its reward is
    NaN, which must be left out, never counted as 0.

    `steps` may be yet to be opened (`stored_steps(PATH)`); they are closed with the environment.
    Rollouts then run in an event loop beside the caller's thread. Where several environments share
    their rollouts, `loop` is the loop in which these are open already.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - gymnasium's own form

    def __init__(
        self,
        steps: OneStep | AbstractAsyncContextManager[OneStep],
        *,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        """Raises `UsageError` for steps that are yet to be opened in another one's loop."""
        if loop and not isinstance(steps, OneStep):
            raise UsageError("open the steps in that loop first, or leave the loop away.")
        self.observation_space = AnyText()
        self.action_space = AnyText()
        self._own_loop = loop is None
        self._loop = loop or _loop_beside()
        self._opened = AsyncExitStack()
        self._closed = False
        self._steps = steps if isinstance(steps, OneStep) else self._open(steps)
        self._state: str | None = None
        self._prompt = ""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self._state = (options or {}).get("state") or self._drawn()
        messages = self._steps.prompt(self._state)
        self._prompt = "\n\n".join(message.text for message in messages)
        return self._prompt, {"state": self._state, "messages": chat(messages)}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Raises `UsageError` if there is no episode."""
        if self._state is None:
            raise UsageError("call reset before step: an episode has one step.")
        result = self._await(self._steps.judged(self._state, action))
        self._state = None
        masked = result.reward is None
        reward = float("nan") if result.reward is None else result.reward
        return self._prompt, reward, not masked, masked, info_of(result)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._own_loop:
            self._await(self._opened.aclose())
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _open(self, steps: AbstractAsyncContextManager[OneStep]) -> OneStep:
        try:
            return self._await(self._opened.enter_async_context(steps))
        except BaseException:
            self.close()
            raise

    def _drawn(self) -> str:
        states = self._steps.states
        if not states:
            raise UsageError("there is no help state to draw: collect some first.")
        return states[int(self.np_random.integers(len(states)))]

    def _await(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


def _loop_beside() -> asyncio.AbstractEventLoop:
    """An event loop that runs in a thread of its own until it is stopped."""
    loop = asyncio.new_event_loop()

    def run() -> None:
        loop.run_forever()
        loop.close()

    threading.Thread(target=run, name="rollouts", daemon=True).start()
    return loop
