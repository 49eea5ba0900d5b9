"""TRL's `GRPOTrainer` on a ground: what is trained on comes from the buffer, without lag, and what
an answer earns from its execution.

The data set that TRL is given holds placeholders. A step then is: help states are drawn in the main
process and told to all; each process writes its share of the answers; all are submitted at once, as
soon as they are written; their rewards go to all processes, and to the buffer in the main one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Any

import torch
from datasets import Dataset
from transformers import PreTrainedTokenizerBase
from transformers.trainer_callback import PrinterCallback
from trl import GRPOConfig, GRPOTrainer

from mle_ideator.chat.templates import ChatTemplate
from mle_ideator.errors import RuntimeFailure
from mle_ideator.messages import Message
from mle_ideator.rl.training.answers import Reader, stop_token
from mle_ideator.rl.training.batches import Batch, groups_of
from mle_ideator.rl.training.ground import Ground
from mle_ideator.rl.training.prompting import prompt_tokens
from mle_ideator.rl.training.trl.processes import agreed, of_all, process, processes
from mle_ideator.rl.training.trl.sampling import Rows, fullest, taught
from mle_ideator.rl.training.trl.settings import states_of, updates_of
from mle_ideator.rl.training.values import Group

Told = Callable[[int, dict[str, float]], bool]
"""Hears a step's number and its metrics; says whether training is to end with it."""

_MOST_RESAMPLES = 3


@dataclass
class _Step:
    """What was seen since the last update on a batch."""

    began: float = field(default_factory=time.monotonic)
    wrote_s: float = 0.0
    waited_s: float = 0.0
    groups: list[Group] = field(default_factory=list)
    found: dict[str, float] = field(default_factory=dict)


class GroundTrainer(GRPOTrainer):
    """Trains the model at a path. Nothing of the run is sent anywhere.

    While it evaluates, rows are the evaluation data's (`prompt`: messages, `state`: an id), and
    what they earn is not taken up.
    """

    eos_token_ids: list[int]

    def __init__(
        self,
        model: str,
        ground: Ground | None,
        template: ChatTemplate,
        tokenizer: PreTrainedTokenizerBase,
        settings: GRPOConfig,
        *,
        peft_config: Any = None,
        resample: bool = False,
        told: Told = lambda *_: False,
        doing: Callable[[str], None] = lambda _: None,
        write: Callable[[int, Any], None] = lambda *_: None,
        **more: Any,
    ) -> None:
        """`ground` is the main process's; the others have none.

        `write(step, save)` puts a checkpoint where it belongs; `save()` makes TRL's part of it in
        all processes. `more` is for `GRPOTrainer`.
        """
        super().__init__(
            model=model,
            reward_funcs=[execution],
            args=settings,
            train_dataset=_placeholders(settings),
            processing_class=tokenizer,
            peft_config=peft_config,
            **more,
        )
        self.remove_callback(PrinterCallback)  # standard output is for results
        self._ground, self._template = ground, template
        self._resample, self._tell, self._doing, self._write = resample, told, doing, write
        self._end_at_stop(tokenizer)
        self._reader = Reader(tokenizer, self.eos_token_ids)
        self._states: list[str] = []
        self._pending: list[Future[Group]] = []
        self._rewards: list[float | None] = []
        self._now = _Step()
        self._entropy = torch.zeros(2, device=self.accelerator.device)
        """Sum over tokens that were learnt on, and their number."""

    def _end_at_stop(self, tokenizer: Any) -> None:
        """Where the stop text is one token, generation can end there by itself."""
        stop = stop_token(tokenizer)
        if stop is not None and not self.use_vllm:
            self.eos_token_ids = [*self.eos_token_ids, stop]
            self.generation_config.eos_token_id = self.eos_token_ids
            self.generation_kwargs["eos_token_id"] = self.eos_token_ids

    @property
    def step(self) -> int:
        """Batches of answers that were learnt from."""
        return int(self.state.global_step // updates_of(self.args))

    def _send_telemetry(self) -> None:
        """TRL would report its use to its makers."""

    # ---------------------------------------------------------------------- from states to rewards

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> Rows:
        if not self.model.training:
            self._states = [row["state"] for row in inputs]
            found: Rows = super()._generate_and_score_completions(inputs)
            return found
        self._now = _Step()
        batches, kept = [], []
        for _ in range(1 + (_MOST_RESAMPLES if self._resample else 0)):
            batches.append(self._batch(len(inputs)))
            kept.append(taught(self._rewards, self.num_generations))
            if self._enough(kept):
                break
        rows = self._learnt_from(batches, [self._own(each) for each in kept])
        self._now.wrote_s = time.monotonic() - self._now.began - self._now.waited_s
        self._doing("learning")
        return rows

    def _batch(self, size: int) -> Rows:
        """Answers to help states drawn now, `size` of them written here."""
        self._doing("writing ideas")
        drawn = agreed(self._draw)
        rows = [row for row in drawn for _ in range(self.num_generations)]
        own = self._own(rows)
        if len(own) != size:
            raise RuntimeFailure(f"a batch has {len(own)} answers, and {size} were expected.")
        self._states = [row["state"] for row in own]
        found: Rows = super()._generate_and_score_completions(own)
        return found

    def _draw(self) -> list[dict[str, Any]]:
        count = states_of(self.args)
        prompts = self._here.draw(count)
        if not prompts:
            raise RuntimeFailure("no help state can be used: see what was said of them above.")
        return [
            {
                "state": prompt.state,
                "prompt": [{"role": one.role, "content": one.text} for one in prompt.messages],
            }
            for prompt in islice(cycle(prompts), count)
        ]

    def _tokenize_prompts(self, prompts: list[Any]) -> tuple[list[list[int]], None, dict[str, Any]]:
        """As they are served, control tokens in them made harmless."""
        known: dict[str, list[int]] = {}
        for prompt in prompts:
            if (key := repr(prompt)) not in known:
                said = [Message(one["role"], one["content"]) for one in prompt]
                known[key] = prompt_tokens(self._template, said)
        return [known[repr(prompt)] for prompt in prompts], None, {}

    def _generate_single_turn(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Has the answers executed at once, while their probabilities are computed."""
        written, logps = super()._generate_single_turn(*args, **kwargs)
        sizes = [self._reader.length(tokens) for tokens in written]
        written = [tokens[:size] for tokens, size in zip(written, sizes, strict=True)]
        if logps is not None:
            logps = [each[:size] for each, size in zip(logps, sizes, strict=True)]
        answers = [self._reader.answer(tokens) for tokens in written]
        rows = of_all(list(zip(self._states, answers, strict=True)))
        if process() == 0:
            ideas = self.num_generations if self.model.training else self.num_generations_eval
            self._pending = [
                self._here.submit(
                    rows[start][0], [answer for _, answer in rows[start : start + ideas]]
                )
                for start in range(0, len(rows), ideas)
            ]
        return written, logps

    def _calculate_rewards(
        self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any
    ) -> torch.Tensor:
        """Of all processes' answers, (answers, 1); NaN is masked."""
        self._rewards = agreed(self._earned)
        known = [float("nan") if reward is None else reward for reward in self._rewards]
        return torch.tensor(known, device=self.accelerator.device)[:, None]

    def _earned(self) -> list[float | None]:
        groups, seconds = groups_of(Batch([], [], self._pending), self._waits)
        self._now.waited_s += seconds
        self._pending = []
        if self.model.training:
            self._here.observe(groups)
            self._now.groups += groups
        return [reward for group in groups for reward in group.rewards]

    def _waits(self, groups: int) -> None:
        self._doing(f"executing ideas, {groups} groups left")

    @property
    def _here(self) -> Ground:
        if self._ground is None:
            raise RuntimeFailure("only the main process executes answers.")
        return self._ground

    # ------------------------------------------------------------------------------------ learning

    def _own(self, rows: Sequence[Any]) -> list[Any]:
        """This process's share of what all have."""
        size = len(rows) // processes()
        return list(rows[process() * size : (process() + 1) * size])

    def _enough(self, kept: Sequence[Sequence[bool]]) -> bool:
        """Has each process as many groups to learn from as it has room for?"""
        ideas, everyone = self.num_generations, processes()
        own = len(kept[0]) // everyone
        counts = [0] * everyone
        for marks in kept:
            for start in range(0, len(marks), ideas):
                counts[start // own] += any(marks[start : start + ideas])
        return all(count >= own // ideas for count in counts)

    def _learnt_from(self, batches: list[Rows], kept: list[list[bool]]) -> Rows:
        """One batch, of which only answers that teach something count."""
        for batch, marks in zip(batches, kept, strict=True):
            mark = torch.tensor(marks, device=self.accelerator.device)[:, None]
            batch["tool_mask"] = batch["completion_mask"] * mark
        rows = batches[0]
        if len(batches) > 1:
            rows = fullest(batches, kept, self.num_generations, self._tokenizer.pad_token_id)
        rows["num_items_in_batch"] = self.accelerator.gather(rows["tool_mask"].sum()).sum()
        return rows

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: Any, attention_mask: torch.Tensor, logits_to_keep: int,
        *args: Any, **kwargs: Any,
    ) -> Any:  # fmt: skip
        """TRL's entropy is of the answers that count; a collapse shows in all of them."""
        found = super()._get_per_token_logps_and_entropies(
            model, input_ids, attention_mask, logits_to_keep, *args, **kwargs
        )
        if found[1] is not None and self.model.training:
            written = attention_mask[:, -logits_to_keep:]
            self._entropy += torch.stack([(found[1].detach() * written).sum(), written.sum()])
        return found

    # ------------------------------------------------------------------------- telling and keeping

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        super().log(logs, start_time)
        if "loss" not in logs or not self.model.training:
            return
        total, tokens = self.accelerator.reduce(self._entropy, reduction="sum").tolist()
        self._entropy.zero_()
        self._now.found = {"entropy": total / max(1.0, tokens), "loss": logs["loss"]}
        for ours, theirs in (("kl", "kl"), ("grad_norm", "grad_norm"), ("lr", "learning_rate")):
            self._now.found[ours] = logs.get(theirs) or 0.0
        if agreed(self._told):
            self.control.should_training_stop = self.control.should_save = True

    def _told(self) -> bool:
        now = self._now
        seconds = time.monotonic() - now.began
        spent = {
            "generate_s": now.wrote_s,
            "wait_s": now.waited_s,
            "learn_s": seconds - now.wrote_s - now.waited_s,
        }
        return self._tell(self.step, {**self._here.metrics(now.groups), **now.found, **spent})

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        self._doing("saving a checkpoint")
        self._write(self.step, lambda: super(GroundTrainer, self)._save_checkpoint(model, trial))

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """TRL would write one beside every checkpoint, about TRL."""


def execution(**_: Any) -> list[float]:
    """Names the reward in TRL's own logs; it is never asked."""
    raise RuntimeFailure("rewards come from executions.")


def _placeholders(settings: GRPOConfig) -> Dataset:
    """As many rows as prompts are drawn in a whole run."""
    steps = settings.max_steps // updates_of(settings)
    return Dataset.from_dict({"prompt": [""] * (steps * states_of(settings))})
