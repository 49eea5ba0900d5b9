"""The matrix task × contender × seed: begun once, gone on with as often as need be.

bench       a whole benchmark in a results folder: lock, plan, checks, matrix
plan        what was asked for, frozen in the results folder
folders     where a cell's run and the runner's own notes lie
states      the runner's notes on each cell, and the lock on a results folder
checks      what can be found wrong before anything runs
cell        one session: begun, gone on with, or found ended; whose fault an error is
matrix      all cells on an engine, with retries
local       an engine: worker processes of this machine; `worker` is what runs in them
ray_engine  an engine: a Ray cluster
progress    how far it is, and what is left

What a run is worth is never kept here: it is read from the run's folder.
"""
