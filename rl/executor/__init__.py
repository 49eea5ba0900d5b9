"""Runs work in parallel, here or on a Ray cluster, and never twice what was finished.

It knows nothing of rollouts: *work* is the name of a function and bytes. What lives here:

- `values`: `Work`, `Resources`, `Done`, `Counters`. `seam`: what every executor can do.
- `local`: `LocalExecutor`, on this machine. `cluster`: `RayExecutor`.
- `scheduling`: what both share: order, merging, retries, counters. `admission`: what fits.
- `cache`: results that survive whoever asked for them. `inputs`: files on the nodes of a cluster.
- `workers`: a worker process as its driver sees it; `worker`: what runs in it; `guard`: its parent,
  which ends it and all that it started; `frames`: what they say to each other.

`docs/executor.md` says how to use it and what was measured. To add an executor, subclass
`scheduling.Scheduler` and say how one try is made.
"""

from mle_ideator.rl.executor.cache import ResultCache
from mle_ideator.rl.executor.seam import Executor
from mle_ideator.rl.executor.values import Counters, Done, NotFinal, Resources, Work

__all__ = ["Counters", "Done", "Executor", "NotFinal", "Resources", "ResultCache", "Work"]
