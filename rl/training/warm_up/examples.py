"""From an ideator's answers to what is learnt: tokens of prompts and answers, each idea once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from mle_ideator.chat.hf import Transformers
from mle_ideator.idea_form import well_formed, wrong_revert
from mle_ideator.ideators.prompted.messages import Form
from mle_ideator.rl.gists import Gist
from mle_ideator.rl.training.prompting import answer_tokens, fitting_prompt
from mle_ideator.rl.training.room import Room
from mle_ideator.rl.training.warm_up.config import Ideas, Which
from mle_ideator.rl.training.warm_up.ideas import Note
from mle_ideator.rl.training.warm_up.shortening import shortened
from mle_ideator.types import HelpState, Idea


class Example(NamedTuple):
    """One idea to learn from."""

    state: str
    prompt: list[int]
    answer: list[int]
    """Its end token included."""


def held_out_of(states: Sequence[str], share: float, seed: int) -> frozenset[str]:
    """The states that are not learnt from: at least one if any are wanted, never all."""
    if not share or len(states) < 2:
        return frozenset()
    count = min(max(1, round(share * len(states))), len(states) - 1)
    return frozenset(Random(seed).sample(sorted(states), count))


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Turns answers into examples, for one model."""

    endpoint: Transformers
    room: Room
    form: Form
    which: Which
    gists: Callable[[str], Gist | None] | None
    """How a state's implementer tells ideas apart; `None` to leave ideas as long as they are."""
    _prompts: dict[str, list[int] | None] = field(default_factory=dict, init=False)

    def read(
        self, notes: Sequence[Note], states: Mapping[str, HelpState]
    ) -> tuple[list[Example], Ideas]:
        """What can be learnt, in the order of the notes, and what became of the rest."""
        seen: set[tuple[str, Idea]] = set()
        kinds: Counter[str] = Counter()
        examples = []
        for note in notes:
            state = states[note.state]
            kind, idea = self._sorted(note, state, seen)
            if idea is not None:
                seen.add((note.state, idea))
                example = self._example(note.state, state, idea)
                kind = "kept" if example else "too_long"
                examples += [example] if example else []
            kinds[kind] += 1
        return examples, Ideas(
            asked=len(notes), **{name: kinds[name] for name in Ideas.__struct_fields__[1:]}
        )

    def _sorted(
        self, note: Note, state: HelpState, seen: set[tuple[str, Idea]]
    ) -> tuple[str, Idea | None]:
        """The idea to learn, or where it is counted instead."""
        if note.proposal is None:
            return "failed", None
        idea = note.proposal.idea
        if idea is None:
            return ("malformed" if note.proposal.malformed else "declined"), None
        numbers = [solution.number for solution in state.situation.solutions]
        if not well_formed(idea) or wrong_revert(idea, numbers):
            return "malformed", None
        if self.which == "worked" and note.reward is None:
            return "failed", None
        if self.which == "worked" and note.reward != 1.0:
            return "worthless", None
        if self.gists is not None:
            idea = shortened(idea, self.gists(note.state))
        return ("equal", None) if (note.state, idea) in seen else ("kept", idea)

    def prompt(self, id: str, state: HelpState) -> list[int] | None:
        """What the model reads of a state; `None` if nothing of it fits."""
        if id not in self._prompts:
            self._prompts[id] = fitting_prompt(self.endpoint.template, state, self.room, self.form)
        return self._prompts[id]

    def _example(self, id: str, state: HelpState, idea: Idea) -> Example | None:
        """`None` if a served model could not write it whole."""
        prompt = self.prompt(id, state)
        answer = answer_tokens(self.endpoint.tokenizer, idea, self.form)
        if prompt is None or len(answer) > min(self.room.answer, self.room.context - len(prompt)):
            return None
        return Example(id, prompt, answer)
