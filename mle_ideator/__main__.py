"""`python -m mle_ideator`."""

from mle_ideator.cli import main

main()
