"""What runs on the other side: programs of the standard library and ipykernel, without the runtime.

    python start.py NAME ...

- `supervisor`: outside the walls; ends everything below when the runtime lets go of it.
- `keeper`: inside the walls; forks whatever runs agent code.
- `kernel`, `script`, `jobs`: what it forks: a kernel, a clean run of a script, a background job.
- `client`: `python` and `job`, as agent code calls them.
- `fork_server`: a warm process of the runtime's, of which supervisors are forks.
- `walls`, `system`: how a fork gets inside; calls of the Linux kernel that Python has not.

They are copied to where a sandbox can see them, and are loaded there under the name `_mle_ideator`.
A `main` returns an exit code, or, in a process that it has forked, what that process is to do: so
no frame of the parent lies below agent code.
"""
