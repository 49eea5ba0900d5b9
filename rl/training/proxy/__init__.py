"""The proxy reward: a model that predicts, from help state and idea, whether a rollout improves.

examples    executed ideas, from a cache, an evaluation's log, or recorded sessions
features    help state and idea as numbers; trees, linear: what is fitted to them, as plain arrays
model       `Proxy`: fitted, calibrated, saved; quality: measured on tasks that it has not seen
rollouts    in training: the surest zeros are not executed, and audited
ideator     at inference: the best of several ideas
"""

from mle_ideator.rl.training.proxy.config import ProxyConfig
from mle_ideator.rl.training.proxy.examples import Example, Examples, results_in, results_of
from mle_ideator.rl.training.proxy.model import Proxy
from mle_ideator.rl.training.proxy.rollouts import ProxiedRollouts, proxied

__all__ = [
    "Example",
    "Examples",
    "ProxiedRollouts",
    "Proxy",
    "ProxyConfig",
    "proxied",
    "results_in",
    "results_of",
]
