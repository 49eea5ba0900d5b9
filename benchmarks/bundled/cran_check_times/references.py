"""Logarithms of counts and sizes, and what of them is compiled, tested or documented."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mle_ideator.benchmarks.references import Given, Reference
from mle_ideator.benchmarks.references.encoding import Pair, as_given
from mle_ideator.benchmarks.references.tabular import ladder

COUNTED = ["r", "doc", "src", "data", "testthat"]


def references() -> Iterator[Reference]:
    return ladder(features, full)


def features(given: Given) -> Pair:
    """With the size of a file of each kind, and sums."""
    train, test = as_given(given)
    return _with_sums(train), _with_sums(test)


def full(given: Given) -> Pair:
    """With all counts and sizes as logarithms, shares, and products of what takes time."""
    train, test = features(given)
    return _with_logs(train), _with_logs(test)


def _with_sums(frame: pd.DataFrame) -> pd.DataFrame:
    made = {
        f"{kind}_mean": frame[f"{kind}_size"] / frame[f"{kind}_count"].clip(lower=1)
        for kind in COUNTED
    }
    made["size"] = frame[[f"{kind}_size" for kind in COUNTED]].sum(axis=1)
    made["code_size"] = frame["r_size"] + frame["src_size"]
    made["dependencies"] = frame[["imports", "suggests", "depends"]].sum(axis=1)
    made["exports"] = frame[["ns_export", "s3_methods", "s4_methods"]].sum(axis=1)
    return frame.assign(**made)


def _with_logs(frame: pd.DataFrame) -> pd.DataFrame:
    logs = {f"log {name}": np.log(frame[name] + 0.01) for name in frame.columns}
    with_logs = pd.concat([frame, pd.DataFrame(logs)], axis=1)
    sources, tests = logs["log src_size"], logs["log testthat_size"]
    return with_logs.assign(
        compiled_and_tested=sources * tests,
        code_and_tests=logs["log r_size"] + tests,
        all_logs=sum(logs[f"log {kind}_size"] for kind in COUNTED),
        documents_and_imports=logs["log doc_size"] + logs["log imports"],
        source_share=frame["src_size"] / (frame["size"] + 0.001),
        data_share=frame["data_size"] / (frame["size"] + 0.001),
        tests_for_exports=frame["testthat_size"] / (frame["exports"] + 1),
    )
