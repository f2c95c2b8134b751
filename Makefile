# make demo, make test: each does all its own set-up. make help lists the rest.
PYTHON ?= $(firstword $(foreach v,3.11 3.12 3.13 3.14,$(shell command -v python$(v) 2>/dev/null)) python3)
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.steplens-setup

.PHONY: help setup test demo format check bench install uninstall gpu-check clean

help:
	@sed -n 's/^## //p' Makefile

## make setup      virtual environment in .venv, packages, and the system libraries Qt needs
setup: $(STAMP)

$(STAMP): constraints.txt pyproject.toml core/importing/_native.c .ci/system-packages
	@sh .ci/system-packages
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@echo "setup: installing packages, torch among them (minutes, the first time)"
	@$(PY) -m pip install --disable-pip-version-check -c constraints.txt torch -e ".[dev]" >$(VENV)/setup.log 2>&1 \
		|| { tail -n 30 $(VENV)/setup.log; echo "setup: failed, the whole log is $(VENV)/setup.log"; exit 1; }
	@$(PY) -c "import torch, PySide6, pyqtgraph, orjson, msgspec, pytest, xdist, hypothesis, ruff" || { echo "setup: a package is missing, see above"; exit 1; }
	@$(PY) -c "from core.importing import native; native.available() or print('setup: no C compiler was found, so large traces open more slowly; with one, run make -B setup')"
	@touch $(STAMP)

## make demo       profile the example, open its trace in the window (or write its picture where there is no screen)
demo: setup
	@$(PY) -m examples.demo

## make test       format, lint, types, import directions, tests
test: setup
	@sh .ci/check

## make format     rewrite the code to the project's format
format: setup
	@$(VENV)/bin/ruff format . && $(VENV)/bin/ruff check --fix .

## make bench      measure the budgets (docs/benchmarks.md)
bench: setup
	@$(PY) -m benchmarks

## make install    desktop entry, icon and file association for the current user
install: setup
	@$(PY) -m gui.desktop install

## make uninstall  take them away again
uninstall: setup
	@$(PY) -m gui.desktop uninstall

## make gpu-check  on a machine with a CUDA GPU: capture the story, compare predicted with measured times, keep samples
gpu-check: setup
	@$(PY) -m examples.gpu_check --keep-samples resources/samples

clean:
	rm -rf build dist core/importing/_native*.so *.egg-info .mypy_cache .ruff_cache .hypothesis
