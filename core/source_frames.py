# ruff: noqa: SIM905  (word lists read better as text)
"""Reading of Python frame names, and which of them are the user's own code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_FRAME = re.compile(r"^(?P<file>.+?)\((?P<line>-?\d+)\): (?P<function>.*)$", re.DOTALL)

# Kineto strips the entries of sys.path, so that library files show as "torch/nn/modules/module.py".
_LIBRARY_TOPS = frozenset(
    """torch torchvision torchaudio torchtext torchgen functorch numpy scipy pandas PIL sklearn matplotlib tqdm
    transformers accelerate datasets diffusers peft huggingface_hub safetensors tokenizers lightning pytorch_lightning
    lightning_fabric lightning_utilities torchmetrics timm einops xformers flash_attn apex deepspeed megatron fairscale
    bitsandbytes triton tensorboard wandb mlflow ray vllm sglang loguru rich click typer hydra omegaconf pydantic
    networkx sympy mpmath multiprocess dill cv2 albumentations webdataset kornia ignite fastai monai torch_geometric
    torch_scatter torch_sparse optree jax tensorflow keras onnx onnxruntime debugpy ipykernel IPython
    jupyter_client tornado zmq traitlets ipywidgets absl pkg_resources setuptools pip six attr attrs""".split()
)
_STANDARD_TOPS = frozenset(
    """multiprocessing concurrent asyncio collections importlib logging json email http urllib unittest xml encodings
    ctypes distutils html sqlite3 zoneinfo wsgiref curses tkinter""".split()
)
_STANDARD_FILES = frozenset(
    """threading runpy contextlib functools queue selectors socket random copy copyreg pickle tempfile abc typing enum
    re warnings weakref inspect ast os posixpath ntpath genericpath subprocess traceback types dataclasses bdb pdb
    cProfile pstats _collections_abc _weakrefset _bootlocale codecs io string textwrap shutil glob fnmatch struct
    datetime _pydatetime decimal fractions statistics heapq bisect operator itertools uuid hashlib hmac secrets locale
    linecache tokenize token keyword reprlib pprint signal site sysconfig platform zipfile gzip tarfile argparse
    optparse getpass ssl base64 csv configparser atexit gc _sitebuiltins numbers nturl2path stat opcode dis""".split()
)
# Files of `profiling` that run in the user's interpreter; torch cuts their folder off, as it is the first of sys.path.
_LAUNCHER = re.compile(r"(^|/)_child(_[a-z]+)?\.py$|^<steplens>/")
_LIBRARY_MARKS = (
    "/site-packages/",
    "/dist-packages/",
    "/lib/python3",
    "/lib64/python3",
    "/_inductor/",
    "/torchinductor_",
)


@dataclass(frozen=True)
class Frame:
    """A Python frame as its slice names it: ``line`` is that of the ``def``."""

    file: str
    line: int
    function: str


@lru_cache(maxsize=65536)
def parse_frame(name: str) -> Frame | None:
    r"""Read ``path/file.py(14): function``; None for built-ins, modules and anything else.

    Windows paths (``C:\a (1)\b.py(14): f``) and Linux ones are read alike.
    """
    if name.startswith(("<built-in", "nn.Module: ", "Python GC")) or "): " not in name:
        return None
    match = _FRAME.match(name)
    if match is None:
        return None
    return Frame(match["file"], int(match["line"]), match["function"])


@lru_cache(maxsize=65536)
def is_library(file: str) -> bool:
    """Tell whether a frame's file belongs to Python, torch or another installed library."""
    path = file.replace("\\", "/")
    if path.startswith(("<", "steplens")) or _LAUNCHER.search(path):
        return True
    lowered = path.lower()
    if any(mark in lowered for mark in _LIBRARY_MARKS) or "/python3" in lowered and "/lib/" in lowered:
        return True
    if re.search(r"/lib/(?:threading|runpy|multiprocessing|contextlib|concurrent)\b", lowered):
        return True  # Windows and framework builds: .../Python311/Lib/threading.py
    if path.startswith("/") or re.match(r"^[A-Za-z]:/", path):
        return "/torch/nn/" in path or "/torch/utils/" in path
    top = path.split("/", 1)[0]
    if "/" in path:
        return top in _LIBRARY_TOPS or top in _STANDARD_TOPS
    return top.removesuffix(".py") in _STANDARD_FILES


@lru_cache(maxsize=65536)
def is_launcher_frame(name: str) -> bool:
    """Tell whether the name of a Python slice is a frame of what started and recorded the script (`profiling`)."""
    frame = parse_frame(name)
    return frame is not None and _LAUNCHER.search(frame.file.replace("\\", "/")) is not None


@lru_cache(maxsize=65536)
def is_user_frame(name: str) -> bool:
    """Tell whether the name of a Python slice is a frame of the user's own code."""
    frame = parse_frame(name)
    return frame is not None and not is_library(frame.file)


@lru_cache(maxsize=65536)
def is_other_library(name: str) -> bool:
    """Tell whether a frame belongs to an installed library that is neither torch nor Python's own."""
    frame = parse_frame(name)
    if frame is None or not is_library(frame.file):
        return False
    path = frame.file.replace("\\", "/")
    for mark in ("/site-packages/", "/dist-packages/"):
        path = path.split(mark)[-1]
    top = path.split("/", 1)[0]
    return "/" in path and top in _LIBRARY_TOPS and top not in ("torch", "torchvision", "torchgen", "functorch")


def parse_old_stack(text: str) -> list[Frame]:
    """Read the ``Call stack`` argument that torch 1.8 to 1.11 wrote on every op, innermost first.

    There the line is that of the *call*, not of the ``def``.
    """
    return [f for f in (parse_frame(part.strip()) for part in text.split(";")) if f is not None]
