"""What an idea is about: read from texts that were labelled by hand."""

from pathlib import Path
from time import perf_counter

import pytest
import yaml

from mle_ideator.benchmarks.measures.categories import categories_in, categories_of
from mle_ideator.operations import OPERATIONS
from mle_ideator.types import Idea

LABELLED = yaml.safe_load(Path(__file__).with_name("labelled_ideas.yaml").read_text("utf-8"))


def outcomes(part: str) -> list[tuple[str | None, str | None]]:
    """Label and reading of each text."""
    return [
        (None if label == "none" else label, next(iter(categories_in(text)), None))
        for label, texts in LABELLED[part].items()
        for text in texts
    ]


def test_the_words_of_the_offline_agents_are_read_as_they_are_meant():
    wrong = {
        name: categories_in(operation.action)
        for name, operation in OPERATIONS.items()
        if categories_in(f"{operation.action} Keep everything else as it is.")[:1]
        != (operation.category,)
    }
    assert wrong == {}


def test_most_ideas_that_were_not_looked_at_are_read_rightly():
    found = outcomes("held_out")
    assert len(found) >= 48
    right = sum(label == read for label, read in found) / len(found)
    told = [label == read for label, read in found if read is not None]
    assert right >= 0.75  # as stated in docs/metrics.md
    assert sum(told) / len(told) >= 0.85


def test_nearly_all_that_were_looked_at_are_read_rightly():
    found = [each for part in LABELLED if part != "held_out" for each in outcomes(part)]
    assert len(found) >= 200
    assert sum(label == read for label, read in found) / len(found) >= 0.95


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("Switch to LightGBM instead of stacking three models.", "model choice"),
        ("Keep the current ensemble and add lags of the target.", "feature engineering"),
        ("Average LightGBM, XGBoost and CatBoost.", "ensembling"),
        ("Fine-tune a BERT.", "model choice"),
        ("", None),
        ("…", None),
    ],
)
def test_what_is_named_in_passing_does_not_count(text, category):
    assert next(iter(categories_in(text)), None) == category


def test_an_idea_is_about_its_action():
    idea = Idea(
        analysis="Refine: the stacked ensemble overfits.",
        action="Calibrate the probabilities.",
        rationale="Log loss punishes what a random forest is too sure of.",
    )
    assert categories_of(idea) == ("post-processing",)


def test_an_idea_may_be_about_several_things():
    text = "Add target encodings of the categories, then tune num_leaves and min_child_samples."
    assert set(categories_in(text)) == {"feature engineering", "hyper-parameters"}


@pytest.mark.parametrize("word", ["a", "add ", "_ ", "use a ", "0.5 * a + ", "k = 1", "lag"])
def test_long_texts_take_no_time(word):
    start = perf_counter()
    categories_in(word * 100_000)
    assert perf_counter() - start < 5
