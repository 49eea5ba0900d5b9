"""What is imported before anything is forked."""

from __future__ import annotations

import subprocess
import sys

import pytest


def test_pyarrow_starts_no_thread_and_nothing_is_left_in_the_environment():
    pytest.importorskip("pyarrow")
    code = """
import os
from mle_ideator.sandboxes.programs import preloading
before = dict(os.environ)
assert preloading.preload(['pyarrow']) == []
assert dict(os.environ) == before and not preloading.variables_read & {'JE_ARROW_MALLOC_CONF'}
threads = os.listdir('/proc/self/task')
print([name for t in threads if 'jemalloc' in (name := open(f'/proc/self/task/{t}/comm').read())])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
