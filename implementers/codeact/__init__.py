"""An acting agent around any chat model: it writes code, reads what comes back, acts again.

- `policy` is the agent: messages, one call, one action,
- `head` renders what stays the same all session, `tail` what is new at each step,
- `written` renders a step as the messages that it was,
- `preview` shows the task's files, `tools` describes the actions as native tools.

The texts are in `prompts/codeact/`; how a reply is read, in `mle_ideator.actions`.
"""

from mle_ideator.implementers.codeact.policy import CodeActImplementer

__all__ = ["CodeActImplementer"]
