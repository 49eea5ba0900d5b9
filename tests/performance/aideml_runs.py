"""Runs a script in aideml's interpreter, a line of standard input each: for `bench_sandboxes.py`.

    PYTHON tests/performance/aideml_runs.py WORKSPACE

PYTHON has aideml installed; nothing else is needed of its environment. As aideml does for each
node of its search, every run resets the interpreter: a new child process. Each answer is a line of
JSON: the seconds that took, and what was printed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path


def main() -> None:
    workspace = Path(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what aideml prints is no answer
    from aide.interpreter import Interpreter  # type: ignore[import-not-found]

    interpreter = Interpreter(workspace)
    code = (workspace / "solution.py").read_text()
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        result = interpreter.run(code, reset_session=True)
        seconds = time.perf_counter() - start
        print(json.dumps([seconds, "".join(result.term_out)]), file=answers, flush=True)
    interpreter.cleanup_session()


if __name__ == "__main__":
    main()
