"""The evolving buffer and the curriculum (AceGRPO, arXiv 2602.07906).

config.py      every constant, with its reason; the ablations
curriculum.py  the formulas, as pure functions
rows.py        what is known of each state
cells.py       which states stand at which level of potential
places.py      which of them are drawable, rest, or are retired
lottery.py     the probabilities of one draw
buffer.py      `EvolvingBuffer`: add, draw, observe
disk.py        save, load; `KeptBuffer`, which outlives its process
views.py       metrics, distribution, explanations
tables.py      the same as tables of texts
plot.py        the plot

A new rule of choice is a pure function in curriculum.py, a constant in config.py, and its test.
"""
