"""mle-ideator: one agent acts on a machine-learning task, another has the ideas.

`docs/architecture.md` follows one step of a session through these modules.
"""

__version__ = "0.1.0"
