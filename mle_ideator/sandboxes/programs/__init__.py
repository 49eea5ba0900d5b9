"""What runs on the other side: programs of the standard library and ipykernel, without the runtime.

    python start.py NAME ...

- `supervisor`: outside the walls; ends everything below when the runtime lets go of it.
- `keeper`: inside the walls; forks whatever runs agent code. `requests`: what that asks of it.
- `kernel`, `script`: what it forks: a kernel, a clean run of a script. (A background job is another
  program.) `preloading`: what forks have imported before, and what they must not share.
- `client`, `job`: `python` and `job`, as agent code calls them.
- `fork_server`: a warm process of the runtime's, of which supervisors are forks; and so is
  `plain_kernel`, a kernel without a sandbox.
- `walls`, `calls`: how a fork gets inside, and the system calls that are refused there.
- `trees`, `leftovers`: how processes are ended, and a container is emptied for another use.
- `system`: calls of the Linux kernel that Python has not.

They are copied to where a sandbox can see them, and are loaded there under the name `_mle_ideator`.
A `main` returns an exit code, or, in a process that it has forked, what that process is to do: so
no frame of the parent lies below agent code.
"""
