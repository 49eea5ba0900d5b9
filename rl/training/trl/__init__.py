"""Training by TRL's `GRPOTrainer`, for GPUs and clusters, on the same ground as the small loop.

contract      which TRL this is made for, and what is relied on in it
settings      from the run's config to TRL's own settings
trainer       `GroundTrainer`: TRL's, with help states from the buffer and rewards from executions
answers       where an answer ends; sampling: which groups are learnt from
processes     what the processes of a launch agree on
checkpoints   the trainer's part of a checkpoint, and the model that is served
running       a run, from its config to its last step
"""
