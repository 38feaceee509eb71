"""`python -m researchenvbench` is `reb`."""

from .cli import main

if __name__ == "__main__":
    main()
