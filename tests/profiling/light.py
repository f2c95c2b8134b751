"""A start of torch without its compiler, for scripts that compile nothing: it takes half the time.

The first use of an optimizer imports ``torch._dynamo``, and the first use of the profiler ``torch._inductor``; both
only to ask what they have not been asked to do. ``write`` makes a folder for ``PYTHONPATH`` that answers instead. It is
named like a folder of installed packages, so that nobody takes it for the user's code.
"""

from __future__ import annotations

from pathlib import Path

SOURCE = """
import importlib.machinery, sys, types

class Light:
    NAMES = ("torch._dynamo", "torch._inductor", "torch._inductor.config")

    def find_spec(self, name, path=None, target=None):
        if name in self.NAMES:
            return importlib.machinery.ModuleSpec(name, self, is_package=name == "torch._inductor")

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.disable = lambda fn=None, recursive=True, **_: fn
        module.graph_break = lambda *_, **__: None
        module.triton = types.SimpleNamespace(cudagraphs=False)

sys.meta_path.insert(0, Light())
"""


def write(folder: Path) -> dict[str, str]:
    """Make the folder; returns the variables that use it (and one thread, since several runs share two cores)."""
    place = folder / "site-packages"
    place.mkdir(exist_ok=True)
    (place / "sitecustomize.py").write_text(SOURCE)
    return {"PYTHONPATH": str(place), "OMP_NUM_THREADS": "1"}
