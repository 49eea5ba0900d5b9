"""Help states as environments of other trainers: one answer to one help state, and its reward.

one_step        what all of them share: the prompt of a help state, the reward of a raw answer
stored          the help states of a store, executed by local workers
verifiers_tasks a task set of verifiers       pip install 'mle-ideator[verifiers]'
openenv_server  a server of OpenEnv           pip install 'mle-ideator[openenv]'
gym_env         a gymnasium environment       pip install 'mle-ideator[gymnasium]'

`one_step` and `stored` need none of these libraries.
"""
