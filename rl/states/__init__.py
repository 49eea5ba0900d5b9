"""Help states as data: collected from runs, kept once each, mailed, and put back on disk.

What lives here: `recorded` (a help state wherever it lies), `identity` (what makes two the same),
`folders` and `archives` (a state as a folder, as one file), `contents` and `index` (the two halves
of a store), `store`, `harvesting` (from a run folder) and `exchange` (export and import).

On disk a help state is a folder: `journal.jsonl`, the events up to and with the help request, and
`workspace/`, the sandbox's snapshot at that moment, which may be missing where nothing was written.
"""

from mle_ideator.rl.states.archives import pack_state, unpack_state
from mle_ideator.rl.states.exchange import export_state, import_state
from mle_ideator.rl.states.folders import help_request_in
from mle_ideator.rl.states.harvesting import Harvested, harvest, packed_request
from mle_ideator.rl.states.store import StateStore

__all__ = [
    "Harvested",
    "StateStore",
    "export_state",
    "harvest",
    "help_request_in",
    "import_state",
    "pack_state",
    "packed_request",
    "unpack_state",
]
