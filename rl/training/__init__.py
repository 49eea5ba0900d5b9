"""Trains an ideator with GRPO on one-step execution rewards (arXiv 2601.17596, 2602.07906).

ground        the core without a model: states drawn, answers executed, rewards taken up
advantages    from a group's rewards to advantages; metrics: what a step was like
config        all settings, in one typed file; `presets/` holds complete ones
loop, policy  a small trainer of our own, to be read in one sitting (torch)
trl           the same on TRL's GRPOTrainer, for GPUs and clusters
running       from a config to a trained model; beginning: help states, model, warm-up; episodes:
              what is drawn from; small: a run of the loop; watching: who is told of its steps
checkpoints   whole or not at all; adapters: of low rank
prompting     what a model reads, as it is served; answers: what it wrote; room: how much of each
warm_up       supervised fine-tuning on ideas; tiny: a small model made on the spot
guards, logs  what watches a run, and where it is written
proxy         a predictor of rewards, to save executions
"""
