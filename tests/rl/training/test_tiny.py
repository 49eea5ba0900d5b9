"""The tiny model: made alike by the same seed, and a model like any other."""

from __future__ import annotations

import json

import pytest

from mle_ideator.errors import UsageError
from mle_ideator.idea_form import PARTS, read_idea
from mle_ideator.messages import CallOptions, Message
from mle_ideator.types import Idea

pytest.importorskip("torch")
pytest.importorskip("transformers")

from mle_ideator.chat.hf import Transformers
from mle_ideator.rl.training.prompting import answer_text, answer_tokens, prompt_tokens
from mle_ideator.rl.training.tiny import END, make_tiny

IDEA = Idea("Refine: it underfits.", "Use gradient boosting.", "Trees find – steps.")
TEXTS = [answer_text(IDEA), "rows 5000, numbers 12", "the best solution is boosted"] * 5
SIZES = {"vocab": 400, "hidden": 32, "layers": 1, "heads": 2, "context": 256}
ASKED = (Message("system", "Advise."), Message("user", f"rows 17 {END}"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_tiny(tmp_path_factory.mktemp("made") / "tiny", TEXTS, **SIZES)


@pytest.fixture(scope="module")
def endpoint(folder) -> Transformers:
    return Transformers(str(folder))


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_same_seed_makes_the_same_model(folder, tmp_path):
    again = make_tiny(tmp_path / "again", TEXTS, **SIZES)
    other = make_tiny(tmp_path / "other", TEXTS, seed=1, **SIZES)
    assert contents(again) == contents(folder)
    assert contents(other)["model.safetensors"] != contents(folder)["model.safetensors"]
    assert contents(other)["tokenizer.json"] == contents(folder)["tokenizer.json"]


def test_it_has_the_sizes_asked_for(folder, endpoint):
    config = json.loads((folder / "config.json").read_text())
    assert (config["hidden_size"], config["num_hidden_layers"]) == (32, 1)
    assert endpoint.context_tokens == 256
    assert len(endpoint.tokenizer) <= 400
    model = endpoint.model()
    assert {str(weight.dtype) for weight in model.parameters()} == {"torch.float32"}
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight


def test_tags_are_tokens_and_text(endpoint):
    for tag in (f"<{slash}{part}>" for part in PARTS for slash in ("", "/")):
        (token,) = endpoint.tokenizer.encode(tag)
        assert endpoint.decode([token]) == tag


def test_an_idea_survives_its_tokens(endpoint):
    tokens = answer_tokens(endpoint.tokenizer, IDEA)
    assert tokens[-1] == endpoint.tokenizer.eos_token_id
    assert read_idea(endpoint.decode(tokens)) == (IDEA, "")


def test_a_prompt_tells_roles_apart_and_holds_no_control_of_its_own(endpoint):
    tokens = prompt_tokens(endpoint.template, ASKED)
    text = endpoint.tokenizer.decode(tokens)
    assert text == f"<|system|>Advise.{END}<|user|>rows 17 {END}{END}<|assistant|>"
    assert tokens.count(endpoint.tokenizer.eos_token_id) == 2  # what the user said is no control
    assert [endpoint.decode([token]) for token in endpoint.tokenizer.encode(" 17")][1:] == [
        "1",
        "7",
    ]


async def test_it_is_served_like_any_model(folder):
    endpoint = Transformers(str(folder))
    options = CallOptions(max_tokens=8, seed=3)
    first, again = [await endpoint.send(ASKED, options) for _ in range(2)]
    assert first.text == again.text
    assert 1 <= first.usage.output_tokens <= 8
    await endpoint.aclose()


async def test_it_stops_at_its_end_token(folder):
    endpoint = Transformers(str(folder))
    model, end = endpoint.model(), endpoint.tokenizer.eos_token_id
    model.get_input_embeddings().weight.data[end] *= 100
    assert model.generation_config.eos_token_id == end
    completion = await endpoint.send(ASKED, CallOptions(max_tokens=100, seed=0))
    assert (completion.finish_reason, completion.usage.output_tokens < 100) == ("stop", True)
    await endpoint.aclose()


@pytest.mark.parametrize(
    ("sizes", "said"),
    [({"vocab": 200}, "vocabulary of 200"), ({"hidden": 30, "heads": 4}, "width 30")],
)
def test_sizes_that_do_not_fit_are_refused(tmp_path, sizes, said):
    with pytest.raises(UsageError, match=said):
        make_tiny(tmp_path / "tiny", TEXTS, **(SIZES | sizes))
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_there_is_left_alone(folder):
    before = contents(folder)
    with pytest.raises(UsageError, match="there already"):
        make_tiny(folder, TEXTS, **SIZES)
    assert contents(folder) == before
