"""A workspace that can be kept and put back, in time and space for what changed.

- `tracked`: a sandbox's workspace. `snapshots`: what is kept of it, as a folder.
- `content`, `changes`, `filling`: what stands there, what has to be done, and doing it.
- `folders`, `copying`, `overlay`: files by descriptors, their blocks, and mounts.
"""
