"""What is shown of a buffer: figures that agree with each other, sentences, the plot."""

from __future__ import annotations

import builtins

import msgspec
import pytest

from mle_ideator.errors import UsageError
from mle_ideator.rl.buffer.buffer import EvolvingBuffer
from mle_ideator.rl.buffer.config import CurriculumConfig
from mle_ideator.rl.buffer.plot import draw_buffer
from tests.rl.curriculum_states import filled, key


@pytest.fixture
def buffer() -> EvolvingBuffer:
    """30 states of 2 tasks: 6 learnable, 2 retired at either end, 3 resting, the others unseen."""
    buffer = filled(30, CurriculumConfig(anneal_draws=0), tasks=["a", "a", "b"])
    buffer.draw(3)
    resting = {each.id for each in map(buffer.explain, map(key, range(30))) if not each.groups}
    free = [number for number in range(30) if buffer.explain(key(number)).status == "drawable"]
    assert len(resting) == 30
    for number in free[:6]:
        buffer.observe(key(number), [1.0, 0.0])
    for _ in range(2):
        buffer.observe(key(free[6]), [0.0, 0.0])
        buffer.observe(key(free[7]), [1.0, 1.0])
    return buffer


def test_metrics_add_up(buffer):
    found = buffer.metrics()
    assert (found.states, found.unseen, found.resting, found.retired) == (30, 22, 3, 2)
    assert found.drawable == 25
    assert found.zero_variance_share == pytest.approx(4 / 10)
    by_task = found.by_task
    for field in ("states", "unseen", "drawable", "resting", "retired", "draws"):
        total = sum(getattr(each, field) for each in by_task.values())
        assert total == (3 if field == "draws" else getattr(found, field))
    assert sum(each.share_of_draws for each in by_task.values()) == pytest.approx(1)
    assert msgspec.json.decode(msgspec.json.encode(found))["states"] == 30


def test_explanations_agree_with_the_distribution(buffer):
    chances = buffer.distribution()
    for number in range(30):
        found = buffer.explain(key(number))
        assert found.probability == pytest.approx(chances[buffer.rows.find(key(number))])
        assert found.potential == pytest.approx(found.spread_term + found.headroom_term)
        assert (found.draws_until_back is None) == (found.status == "drawable")


def test_explanations_say_why(buffer):
    texts = [buffer.explain(key(number)).text for number in range(30)]
    assert sum("drawn a moment ago" in text for text in texts) == 3
    assert sum("no idea improved" in text for text in texts) == 1
    assert sum("every idea improved" in text for text in texts) == 1
    assert sum("P = 0.75 by its rewards; 0 drawable states stand" in text for text in texts) == 6
    with pytest.raises(UsageError, match="not in the buffer"):
        buffer.explain(key(99))


def test_an_explanation_of_what_is_below_the_top():
    buffer = filled(10, CurriculumConfig(anneal_draws=0, top_fraction=0.2))
    for number in range(4):
        buffer.observe(key(number), [1.0, 0.0])
    text = buffer.explain(key(8)).text
    assert text == "not drawn: 4 drawable states stand higher, and the top 20% are drawn from."


def test_silent_states_are_explained():
    buffer = filled(2)
    for _ in range(2):
        buffer.observe(key(0), [None, -1.0])
    assert "of its last 2 groups no idea was executed" in buffer.explain(key(0)).text


def test_who_does_not_come_back_by_itself_is_explained():
    buffer = filled(2, CurriculumConfig(return_after=0))
    for _ in range(2):
        buffer.observe(key(0), [1.0, 1.0])
    found = buffer.explain(key(0))
    assert found.draws_until_back is None
    assert found.text.endswith("until all that are retired are brought back.")


def test_the_likely_ones_come_first(buffer):
    rows = buffer.likely(8)
    assert len(rows) == 8
    chances = [row.probability for row in rows]
    assert chances == sorted(chances, reverse=True)
    assert max(buffer.distribution()) == pytest.approx(chances[0])
    assert EvolvingBuffer().likely() == []


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_the_plot_is_written(tmp_path, buffer, suffix):
    file = (tmp_path / "buffer").with_suffix(suffix)
    draw_buffer(buffer, file)
    content = file.read_bytes()
    if suffix == ".svg":
        for text in (b"unseen: 19", b"retired: 2", b"from the top 20%", b"share of the next draw"):
            assert text in content
    else:
        assert content.startswith(b"\x89PNG")


def test_an_empty_buffer_can_be_drawn(tmp_path):
    draw_buffer(EvolvingBuffer(), tmp_path / "empty.svg")
    assert (tmp_path / "empty.svg").stat().st_size


def test_without_matplotlib_the_extra_is_named(monkeypatch, tmp_path):
    found = builtins.__import__

    def without(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return found(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match=r"mle-ideator\[report\]"):
        draw_buffer(EvolvingBuffer(), tmp_path / "plot.svg")
