"""Ideas in words become operations, also where they say what is not wanted."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from mle_ideator.implementers.offline.understanding import Understanding, gist, understand
from mle_ideator.operations import OPERATIONS, mentioned
from mle_ideator.types import Idea


def _paraphrases():
    path = Path(__file__).with_name("paraphrases.py")
    spec = importlib.util.spec_from_file_location("paraphrases", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


P = _paraphrases()


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operations_own_action_means_it_and_nothing_else(name):
    action = OPERATIONS[name].action
    assert understand(action) == Understanding(add=(name,))
    assert [operation.name for operation in mentioned(action)] == [name]


def test_there_are_many_paraphrases_of_every_operation():
    assert len(P.WANTED) + len(P.UNWANTED) >= 100
    named = {name for names in P.WANTED.values() for name in names}
    assert named == set(OPERATIONS)


@pytest.mark.parametrize(("text", "names"), P.WANTED.items())
def test_paraphrases(text, names):
    wish = understand(text)
    assert (wish.add, wish.remove) == (names, ())


@pytest.mark.parametrize(("text", "both"), P.UNWANTED.items())
def test_negations(text, both):
    wish = understand(text)
    assert (wish.add, wish.remove) == both


@pytest.mark.parametrize("text", P.NOTHING)
def test_what_names_no_operation_is_not_understood(text):
    assert understand(text).is_empty


@pytest.mark.parametrize(
    ("text", "seeds", "folds"),
    [
        ("Average 5 seeds.", 5, None),
        ("Average over four random seeds.", 4, None),
        ("Bag with seeds: 3.", 3, None),
        ("Use 1000 seeds.", 6, None),
        ("Use 10-fold cross-validation.", None, 10),
        ("Validate on eight folds.", None, 8),
        ("Use 1 fold.", None, None),
        ("Try harder.", None, None),
    ],
)
def test_numbers_of_seeds_and_folds(text, seeds, folds):
    wish = understand(text)
    assert (wish.seeds, wish.folds) == (seeds, folds)


def test_a_very_long_text_is_read_at_once():
    assert understand("tune " * 20_000).add == ("tune",)


def test_names_of_columns_are_no_wishes():
    text = "Add ratios. Columns: `lag_3`, `pca 1`, `stack`."
    assert understand(text, ["lag_3", "pca 1", "stack"]).add == ("ratios",)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("Use boosting. Columns: `age`.", "Please switch to gradient boosting", True),
        ("Use boosting", "Use boosting, not a forest", False),
        ("Add ratios", "Clip outliers", False),
        ("Average 5 seeds", "Average 3 seeds", False),
        ("Use boosting and ratios", "Use boosting and `ratios`", False),  # it may be a column
        ("Use boosting on `drop` and ratios", "Use boosting and ratios", False),
    ],
)
def test_ideas_with_the_same_gist_ask_for_the_same(one, other, alike):
    ideas = [Idea("Refine: so.", one, "It helps."), Idea("Refine, as it is.", other, "Perhaps.")]
    assert (gist(ideas[0]) == gist(ideas[1])) is alike
    assert gist(ideas[0]) != gist(Idea("Revert to #2: so.", one, "It helps."))
