"""The advising agents. Each answers a help state with one idea, or says why it has none.

`null`, `vague`, `fixed` and `random` are for comparison, `offline` is the default that needs no
model. To add one, write one file with one class: `async def propose(self, state: HelpState) ->
Proposal`, a constructor that takes nothing or the text after the colon of its spec, and no memory
between calls. A dotted path (`my_package.my_module:MyIdeator`) finds it as it is; an entry point in
the group `mle_ideator.ideators` gives it a short name. `docs/ideators.md` has an example that runs.
"""
