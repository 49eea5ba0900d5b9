"""The parts of an executor by themselves: what fits, in which order, and files on nodes."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mle_ideator.errors import RuntimeFailure, UsageError
from mle_ideator.rl.executor import Resources, ResultCache, Work, guard
from mle_ideator.rl.executor.admission import Budget, Capacity, Queue
from mle_ideator.rl.executor.cluster import RayExecutor
from mle_ideator.rl.executor.inputs import Digests, NodeFiles

SMALL, LARGE = Resources(), Resources(cores=4)


@dataclass(eq=False)
class Waiting:
    asks: Resources
    since: float


def queue_of(*asked: Resources) -> Queue[Waiting]:
    queue: Queue[Waiting] = Queue(patience_s=60)
    for since, asks in enumerate(asked):
        queue.add(Waiting(asks, since))
    return queue


def test_the_oldest_that_fits_comes_first():
    queue, budget = queue_of(SMALL, LARGE, SMALL), Budget(Capacity(4, 0, 0))
    order = []
    while item := queue.next(budget, now=3):
        order.append(item.since)
    assert order == [0, 2]
    for _ in order:
        budget.give_back(SMALL)
    assert queue.next(budget, now=3).since == 1
    assert len(queue) == 0


def test_a_large_one_is_not_overtaken_for_ever():
    queue, budget = queue_of(SMALL, LARGE, SMALL), Budget(Capacity(4, 0, 0))
    assert queue.next(budget, now=99).since == 0
    assert queue.next(budget, now=99) is None
    budget.give_back(SMALL)
    assert queue.next(budget, now=99).since == 1


shapes = st.builds(
    Resources,
    cores=st.integers(1, 4),
    memory_gib=st.none() | st.sampled_from([0.1, 0.3, 0.7]),
    gpus=st.integers(0, 2),
)


@given(st.lists(shapes, max_size=30), st.randoms())
def test_a_budget_is_never_exceeded_and_all_of_it_comes_back(asked, chance):
    capacity = Capacity(4, 1.0, 2)
    queue, budget, running = queue_of(*asked), Budget(capacity), []
    for now in count():
        while item := queue.next(budget, now):
            running.append(item.asks)
        assert sum(each.cores for each in running) <= 4
        assert sum(each.memory_gib or 0 for each in running) <= 1.0 + 1e-6
        assert sum(each.gpus for each in running) <= 2
        if not running:
            break
        budget.give_back(running.pop(chance.randrange(len(running))))
    assert len(queue) == 0
    assert budget.take(Resources(cores=4, memory_gib=1.0, gpus=2))


def test_a_budget_may_shrink_below_what_runs():
    budget = Budget(Capacity(2, 0, 0))
    assert budget.take(SMALL)
    budget.capacity = Capacity(1, 0, 0)
    assert not budget.take(SMALL)
    budget.give_back(SMALL)
    assert budget.take(SMALL)


def test_identity_is_function_and_key():
    one = Work(function="a:b", key="1", limit_s=1)
    assert one.identity == Work(function="a:b", key="1", argument=b"x", limit_s=2).identity
    assert one.identity != Work(function="a:c", key="1", limit_s=1).identity
    assert one.identity != Work(function="a:b", key="2", limit_s=1).identity
    assert Work(function="a:b", limit_s=1).identity is None


def test_a_result_under_a_wrong_name_is_none(tmp_path):
    cache = ResultCache(tmp_path)
    cache.prepare()
    cache.put("ab1", b"value")
    assert cache.get("ab1") == b"value"
    cache.path("ab1").rename(cache.path("ab2"))
    assert cache.get("ab2") is None
    assert list((tmp_path / "incoming").iterdir()) == []


def test_what_a_guard_says():
    assert guard.told("ended -11\n") == ("ended", -11)
    assert guard.told("timeout 0\n").why == "timeout"
    assert guard.told("let_go 0\n").why == "let_go"
    assert guard.told("").code == -9


# -------------------------------------------------------------------------- files on nodes


def stored(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    return Digests().named(str(path))


def test_a_content_is_fetched_once_a_node(tmp_path):
    file, fetched = stored(tmp_path, "state.tar", b"content"), []

    def fetch():
        fetched.append(1)
        return b"content"

    def use():
        with NodeFiles(tmp_path / "node").held(file, fetch) as path:
            assert path.read_bytes() == b"content"
            assert path.name == "state.tar"

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fetched) == 1


def test_a_changed_file_has_another_digest(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"1")
    digests = Digests()
    first = digests.named(str(path))
    assert digests.named(str(path)) == first
    path.write_bytes(b"2")
    assert digests.named(str(path)).digest != first.digest
    with pytest.raises(UsageError, match="can not be read"):
        digests.named(str(tmp_path / "gone"))


def test_the_longest_unused_leaves_unless_it_is_in_use(tmp_path):
    files = [stored(tmp_path, name, name.encode() * 40) for name in "abcd"]
    node = NodeFiles(tmp_path / "node", room=100)
    fetched = []

    def use(index):
        def fetch():
            fetched.append(index)
            return "abcd"[index].encode() * 40

        return node.held(files[index], fetch)

    with use(0) as kept:
        for index in (1, 2):
            with use(index):
                pass
        assert kept.exists()  # the oldest, but in use: so another one left
    with use(1):
        pass
    assert fetched == [0, 1, 2, 1]
    with use(3):
        pass
    assert not kept.exists()


# ------------------------------------------------------------------------------ without Ray


async def test_without_ray_the_command_to_get_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install 'mle-ideator\[ray\]'"):
        await RayExecutor().__aenter__()


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
async def test_where_nobody_listens_is_told_at_once(address):
    with pytest.raises(RuntimeFailure, match=f"the Ray cluster {address} can not be reached"):
        await RayExecutor(address).__aenter__()
