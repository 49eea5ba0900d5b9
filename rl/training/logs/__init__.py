"""Where a run is written: `metrics.jsonl` always, and the trackers that the config names.

A tracker is one module here and one line in `TRACKERS`; it imports its package when it is opened,
and raises `UsageError` with the command that installs it.
"""

from mle_ideator.rl.training.logs.config import LogConfig
from mle_ideator.rl.training.logs.seam import Logs, Table
from mle_ideator.rl.training.logs.several import TRACKERS, open_logs

__all__ = ["TRACKERS", "LogConfig", "Logs", "Table", "open_logs"]
