"""What agent code may use: bounds that the system keeps, and a watch over the others.

- `control_groups` (with `group_places`, `hierarchies`, `group_reader`): memory and processes.
- `rlimits`: what the system keeps for each process. `gpus`: which ones are shown.
- `watching` (with `usage`, `disk`): looks again and again, and says when a sandbox has to be
  stopped.
"""
