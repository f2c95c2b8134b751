"""Runs a script under torch.profiler; its result is a folder on disk.

The standard library has a package of this name from Python 3.15 on (PEP 799); extending the path keeps its modules
importable beside ours.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
