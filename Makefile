# Everything that a checkout can do, each in one command. All set-up happens by itself.

# On every core, and whoever has nothing left takes over tests of another.
pytest = .venv/bin/pytest --numprocesses=logical --dist=worksteal

.PHONY: help demo test test-slow test-container test-gpu lint check clean

help:
	@echo 'make demo            build and judge environments for real research code, print the table'
	@echo 'make test            the quick tests'
	@echo 'make test-slow       the tests that take long, need a package index, or start containers'
	@echo 'make test-container  those that start containers; the first makes a base image'
	@echo 'make test-gpu        the tests that need an NVIDIA GPU'
	@echo 'make lint            ruff, and ruff again as the formatter'
	@echo 'make check           lint, types and import directions'
	@echo 'make clean           remove .venv and caches; runs/ is kept'

demo:
	@scripts/bootstrap demo
	@.venv/bin/reb run starter
	@echo 'next: .venv/bin/reb --help, or . .venv/bin/activate and then reb'

test:
	@scripts/bootstrap dev
	$(pytest) -m 'not slow and not network and not container and not gpu'

test-slow:
	@scripts/bootstrap dev
	$(pytest) -m '(slow or network or container) and not gpu'

test-container:
	@scripts/bootstrap dev
	$(pytest) -m 'container and not gpu'

test-gpu:
	@scripts/bootstrap dev
	.venv/bin/pytest -m gpu

lint:
	@scripts/bootstrap dev
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

check: lint
	.venv/bin/mypy
	.venv/bin/lint-imports

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
