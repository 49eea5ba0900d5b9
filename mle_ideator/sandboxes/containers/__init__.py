"""The docker sandbox.

- `docker`: the sandbox; `container`: its supervisor; `daemon`: the only user of the package
  `docker`.
- `inside`: what an image has; `recipe` and the `Dockerfile`: how the usual one is made.
- `handing`: whom agent code runs as, and files handed to that user.
"""
