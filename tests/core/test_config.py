"""Defaults, then a file, then overrides, then options; unknown keys named with the nearest."""

import pytest

from mle_ideator.config import RunConfig, dump_config, load_config
from mle_ideator.errors import UsageError


def test_later_ones_win(tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text("task: mnist5k\nseed: 3\nlimits: {steps: 4, time_s: 60}\n")
    config = load_config(RunConfig, file, ["limits.steps=5", "seed=7"], seed=9, task=None)
    assert (config.task, config.seed, config.limits.steps, config.limits.time_s) == (
        "mnist5k",
        9,
        5,
        60.0,
    )


def test_what_is_written_reads_back_the_same(tmp_path):
    config = load_config(RunConfig, None, (), data__train="a.csv", data__target="täglich: #1")
    file = tmp_path / "config.yaml"
    file.write_text(dump_config(config))
    assert load_config(RunConfig, file) == config


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        (["stepz=3"], "unknown config key 'stepz'"),
        (["limits.stepz=3"], "did you mean 'limits.steps'"),
        (["limits.steps=many"], "limits.steps: Expected `int`"),
        (["seed"], "must be written key=value"),
        (["task=["], "is not YAML"),
        (["selection=best"], "selection: Invalid enum value"),
        (["limits=3"], "limits: Expected `object`"),
        (["limits.steps=0"], "limit 'steps' must be more than 0"),
    ],
)
def test_wrong_overrides_get_one_clear_line(overrides, line):
    with pytest.raises(UsageError) as caught:
        load_config(RunConfig, None, overrides)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"a: [", b"- 1\n", b"\xff\xfe", None])
def test_wrong_files_get_one_clear_line(tmp_path, content):
    file = tmp_path / "run.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError, match=r"config file .*run\.yaml") as caught:
        load_config(RunConfig, file)
    assert "\n" not in str(caught.value)
