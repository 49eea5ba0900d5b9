"""A task set of verifiers (v1): each help state is a task, its reward that of one rollout.

`IdeaTasks` is the task set, `OneAnswer` the harness for it: an idea is one answer, so no program
has to be started to get it. verifiers finds task sets by the name of an installed module; such a
module of one's own says where rollouts come from:

    from mle_ideator.rl.environments.verifiers_tasks import IdeaTasks, OneAnswer

    class MyIdeas(IdeaTasks):
        def __init__(self, config):
            super().__init__(config, OneStep(rollouts=...))

    __all__ = ["MyIdeas", "OneAnswer"]

Where the runtime broke, scoring raises: verifiers then marks the trace as failed. Its reward reads
0, so leave out traces that are not `ok`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mle_ideator.errors import RuntimeFailure, UsageError
from mle_ideator.rl.environments.one_step import OneStep, info_of

try:
    import verifiers.v1 as vf
    from openai import AsyncOpenAI
except ImportError as error:
    raise UsageError(
        f"the task set needs the package verifiers 0.4 or newer ({error}): "
        "pip install 'mle-ideator[verifiers]'."
    ) from error

RESULT = "rollout"
"""Under this key `trace.info` holds what came of the answer."""


class IdeaData(vf.TaskData):
    """A help state, as the wire has it."""

    state: str
    """Its id."""


class IdeaTask(vf.Task[IdeaData]):
    """Answer one help state."""

    def __init__(self, data: IdeaData, steps: OneStep, config: vf.TaskConfig | None = None) -> None:
        super().__init__(data, config)
        self._steps = steps

    @property
    def key(self) -> str:
        return self.data.state

    @vf.reward
    async def one_step_reward(self, trace: vf.Trace) -> float:
        """Raises `RuntimeFailure` if nothing is known."""
        answer, cut = trace.last_reply, trace.is_truncated
        result = await self._steps.judged(self.data.state, answer, cut=cut)
        trace.info[RESULT] = info_of(result)
        if result.reward is None:
            raise RuntimeFailure(result.detail or "the runtime broke")
        return result.reward


class IdeaTasks(vf.Taskset[IdeaTask, vf.TasksetConfig]):
    """All help states, in their order."""

    def __init__(self, config: vf.TasksetConfig, steps: OneStep) -> None:
        super().__init__(config)
        self._steps = steps

    def load(self) -> Iterator[IdeaTask]:
        for card in self._steps.rollouts.cards():
            system, *asked = self._steps.prompt(card.id)
            data = IdeaData(
                id=card.id,
                name=f"{card.task} {card.id[:12]}",
                description=f"{card.kind} at depth {card.depth}",
                system_prompt=system.text,
                prompt=[vf.UserMessage(content=message.text) for message in asked],
                state=card.id,
            )
            yield IdeaTask(data, self._steps, self.config.task)


class OneAnswer(vf.Harness[vf.HarnessConfig]):
    """Asks the model once, in this process."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        system, asked = self.resolve_prompt(data)
        messages: list[Any] = [{"role": "system", "content": system}] if system else []
        messages += [message.model_dump(exclude_none=True) for message in asked]
        async with AsyncOpenAI(base_url=endpoint, api_key=secret, max_retries=0) as client:
            await client.chat.completions.create(model=ctx.model, messages=messages)
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")
