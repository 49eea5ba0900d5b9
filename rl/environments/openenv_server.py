"""A server of OpenEnv: answers are submitted, and asked after by the id of their job.

A rollout takes minutes, and clients of OpenEnv wait a minute for a message by default. So a step
that submits an answer returns at once; a step that asks after the job waits `POLL_S` seconds at
most. Jobs belong to the server, not to a session: one that lost its connection asks again.
"""

from __future__ import annotations

import asyncio
from hashlib import sha256
from random import Random
from typing import Any, Literal

from mle_ideator.errors import UsageError
from mle_ideator.rl.environments.one_step import OneStep, chat, info_of
from mle_ideator.rl.values import RolloutResult

try:
    from fastapi import FastAPI
    from openenv.core.env_server.http_server import create_fastapi_app
    from openenv.core.env_server.interfaces import Environment
    from openenv.core.env_server.types import Action, Observation, State
    from pydantic import Field
except ImportError as error:
    raise UsageError(
        f"the server needs the package openenv-core 0.3 or newer ({error}): "
        "pip install 'mle-ideator[openenv]'."
    ) from error

POLL_S = 20.0
SESSIONS = 64
MOST_KEPT = 10_000
"""Of more finished jobs the oldest are forgotten; asking after one says so."""


class IdeaAction(Action):
    """Either an answer, or the id of a job to ask after."""

    answer: str | None = Field(None, description="The model's raw answer; submits it.")
    cut: bool = Field(False, description="Did the answer reach a limit of tokens?")
    state: str | None = Field(None, description="Help state answered; without it, the episode's.")
    job: str | None = Field(None, description="Id of a job that was submitted; asks after it.")


class IdeaObservation(Observation):
    """What is known now. `reward` is none while the job runs, and where the runtime broke."""

    status: Literal["asked", "running", "done", "masked"]
    state: str | None = None
    prompt: list[dict[str, str]] = Field(default_factory=list)
    """Chat messages; of `reset` only."""
    job: str | None = None
    result: dict[str, Any] | None = None


class Jobs:
    """Answers that are executed, or were. Lives in one event loop."""

    def __init__(self, steps: OneStep) -> None:
        self.steps = steps
        self._tasks: dict[str, asyncio.Task[RolloutResult]] = {}

    def submit(self, state: str, answer: str, cut: bool) -> str:
        """The job's id: the same answer to the same help state is the same job."""
        self.steps.rollouts.help_state(state)
        job = sha256(repr((state, answer, cut)).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        if job not in self._tasks or _failed(self._tasks[job]):
            self._forget()
            work = self.steps.judged(state, answer, cut=cut)
            self._tasks[job] = asyncio.get_running_loop().create_task(work)
        return job

    async def result(self, job: str) -> RolloutResult | None:
        """The result, `None` if it is not there after `POLL_S`. Raises `UsageError`."""
        task = self._tasks.get(job)
        if task is None:
            raise UsageError(f"there is no job {job!r}: it was forgotten, or never submitted here.")
        done, _ = await asyncio.wait({task}, timeout=POLL_S)
        return task.result() if done else None

    def _forget(self) -> None:
        done = [job for job, task in self._tasks.items() if task.done()]
        for job in done[: max(0, len(done) - MOST_KEPT + 1)]:
            del self._tasks[job]


def _failed(task: asyncio.Task[RolloutResult]) -> bool:
    """Is it worth being tried again?"""
    if not task.done():
        return False
    return task.cancelled() or task.exception() is not None or task.result().reward is None


class IdeaEnvironment(Environment[IdeaAction, IdeaObservation, State]):
    """One session: one help state at a time, any number of answers to it."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, jobs: Jobs) -> None:
        super().__init__()
        self._jobs = jobs
        self._help_state: str | None = None
        self._episode = State()

    async def reset_async(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        state: str | None = None,
        **kwargs: Any,
    ) -> IdeaObservation:
        """Show the help state `state`, or one that `seed` draws."""
        steps = self._jobs.steps
        self._help_state = state or _drawn(steps, seed)
        self._episode = State(episode_id=episode_id, step_count=0)
        prompt = await asyncio.to_thread(steps.prompt, self._help_state)
        return IdeaObservation(status="asked", state=self._help_state, prompt=chat(prompt))

    async def step_async(
        self, action: IdeaAction, timeout_s: float | None = None, **kwargs: Any
    ) -> IdeaObservation:
        self._episode.step_count += 1
        match action:
            case IdeaAction(answer=str(answer), job=None):
                return self._submitted(action.state or self._help_state, answer, action.cut)
            case IdeaAction(answer=None, job=str(job)):
                return _told(job, await self._jobs.result(job))
        raise UsageError("a step gives either an answer or the id of a job.")

    def _submitted(self, state: str | None, answer: str, cut: bool) -> IdeaObservation:
        if state is None:
            raise UsageError("which help state is answered? call reset first, or name it.")
        job = self._jobs.submit(state, answer, cut)
        return IdeaObservation(status="running", state=state, job=job)

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> IdeaObservation:
        raise UsageError("this environment is asynchronous: await reset_async.")

    def step(
        self, action: IdeaAction, timeout_s: float | None = None, **kwargs: Any
    ) -> IdeaObservation:
        raise UsageError("this environment is asynchronous: await step_async.")

    @property
    def state(self) -> State:
        return self._episode


def _told(job: str, result: RolloutResult | None) -> IdeaObservation:
    if result is None:
        return IdeaObservation(status="running", job=job)
    return IdeaObservation(
        status="masked" if result.reward is None else "done",
        state=result.state,
        job=job,
        result=info_of(result),
        reward=result.reward,
        done=True,
    )


def _drawn(steps: OneStep, seed: int | None) -> str:
    states = steps.states
    if not states:
        raise UsageError("there is no help state to draw: collect some first.")
    return Random(seed).choice(states)


def app_of(steps: OneStep, sessions: int = SESSIONS) -> FastAPI:
    """The server's application, for uvicorn; at most so many sessions at a time."""
    jobs = Jobs(steps)

    class Session(IdeaEnvironment):
        def __init__(self) -> None:
            super().__init__(jobs)

    return create_fastapi_app(Session, IdeaAction, IdeaObservation, max_concurrent_envs=sessions)
