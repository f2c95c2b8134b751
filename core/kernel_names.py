"""Kernel names short enough to be read on a slice: what the device does, without template arguments and prefixes."""

from __future__ import annotations

import re
from functools import lru_cache

from core.words import plain_name

# Functions that only say how the work is spread over threads; the operation stands in their template arguments.
_WRAPPERS = {
    "elementwise_kernel": "elementwise",
    "elementwise_kernel_with_index": "elementwise",
    "elementwise_kernel_manual_unroll": "elementwise",
    "vectorized_elementwise_kernel": "elementwise",
    "unrolled_elementwise_kernel": "elementwise",
    "index_elementwise_kernel": "index",
    "reduce_kernel": "reduce",
    "multi_tensor_apply_kernel": "multi_tensor",
    "distribution_elementwise_grid_stride_kernel": "random",
}
_WORD = re.compile(
    r"(?P<kernel>\w+?)_kernel(?:_cuda|_impl|_nocast|_out)*(?=[(<])|CUDAFunctor(?:OnSelf|OnOther)?_(?P<cuda>\w+)"
    r"|(?P<functor>\w+?)_?[Ff]unctor\b|(?P<ops>\w+)Ops\b|launch_(?P<launch>\w+)"
)
_BORING = {"gpu", "AUnary", "BUnary", "Binary", "Unary", "Reduce", "func_wrapper", "opmath_gpu", "opmath_symmetric_gpu"}
# The first template argument that is no number and no type stands for the operation where no functor is recognised.
_ARGUMENT = re.compile(r"(?:^|[\s,<])(?:\w+::)*([A-Za-z_]\w*)(?=\s*(?:[<,]|$))")
_TYPES = frozenset(
    (
        "bool",
        "char",
        "short",
        "int",
        "long",
        "unsigned",
        "signed",
        "float",
        "double",
        "void",
        "complex",
        "true",
        "false",
    )
    + ("half", "__half", "Half", "BFloat16", "__nv_bfloat16", "Array", "array", "ReduceOp", "TensorListMetadata")
    + (
        "OffsetCalculator",
        "TrivialOffsetCalculator",
        "LoadWithCast",
        "LoadWithoutCast",
        "StoreWithCast",
        "StoreWithoutCast",
    )
)
_NAMESPACE = re.compile(r"(?:\b[A-Za-z_]\w*|\(anonymous namespace\))::")
LOOKED_AT = 600  # letters of a name that are told on one line
_TENSILE = re.compile(r"^Cijk_(\w+?)_(MT\d+x\d+x\d+)")


@lru_cache(maxsize=65536)
def short_kernel_name(name: str) -> str:
    """Return what matters of a device slice's name.

    ``void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, ...>(...)`` becomes
    ``add · elementwise``; plain names stay as they are. Never empty for a name that is not.
    """
    text = name.strip()
    tensile = _TENSILE.match(text)
    if tensile:
        return f"Cijk {tensile[2]}"
    if text.startswith(("Memcpy", "Memset")) or ("(" not in text and "<" not in text):
        return text.rsplit("::", 1)[-1] if text.startswith("void ") else text
    function, arguments = _split(text.replace("(anonymous namespace)", "anonymous"))
    base = function.rsplit("::", 1)[-1]
    if base in _WRAPPERS:
        operation = _operation(arguments)
        return f"{operation} · {_WRAPPERS[base]}" if operation else _WRAPPERS[base]
    if base in ("Kernel", "Kernel2", "kernel", "device_kernel") and arguments:
        inner = re.match(r"[\w:]+", arguments)
        if inner and not inner[0].isdigit():
            return inner[0].rsplit("::", 1)[-1]
    return re.sub(r"(?<=\w)_?[kK]ernel$", "", base) or text


def is_mangled_long(name: str) -> bool:
    """Whether a name is that of a C++ template or a generated kernel, whose telling part is not at its ends."""
    templated = 0 < name.find("<") < name.find("(") and name.rstrip().endswith((")", "const"))
    return templated or name.startswith(("void ", "Cijk_", "ncclKernel_", "ncclDevKernel_"))


@lru_cache(maxsize=4096)
def kernel_in_line(name: str) -> tuple[str, str]:
    """Short name of a kernel, and what tells it from others of that name: its template without namespaces.

    The second is "" where the short name says all.
    """
    short, text = short_kernel_name(name), name.strip()[:LOOKED_AT]
    if _TENSILE.match(text):
        return short, text
    function, arguments = _split(_NAMESPACE.sub("", text))
    rest = f"{function}<{arguments.strip()}>" if arguments else function
    return short, "" if rest in (short, f"{short}_kernel", f"Kernel<{short}>") else rest


@lru_cache(maxsize=65536)
def short_op_name(name: str) -> str:
    """Operator, range or frame name without what every neighbour has too (``aten::``, ``nn.Module:``, folders)."""
    for prefix in ("aten::", "nn.Module: ", "autograd::engine::evaluate_function: "):
        if name.startswith(prefix) and len(name) > len(prefix):
            return name[len(prefix) :]
    match = re.match(r"^(?:.*[\\/])?([^\\/]+\(\d+\): .+)$", name)
    return match[1] if match else plain_name(name)


def _split(text: str) -> tuple[str, str]:
    """Qualified name of the function and its template arguments, without return type and parameters."""
    angle = paren = 0
    word_at, open_at, close_at, end = 0, -1, -1, len(text)
    for i, character in enumerate(text):
        if character == "(":
            if angle == 0 and paren == 0 and i > word_at:
                end = i
                break
            paren += 1
        elif character == ")":
            paren -= 1
        elif paren == 0 and character == "<":
            if angle == 0:
                open_at = i
            angle += 1
        elif paren == 0 and character == ">":
            angle -= 1
            close_at = i
        elif angle == 0 and paren == 0 and character == " ":
            word_at, open_at = i + 1, -1
    if open_at < word_at:
        return text[word_at:end], ""
    stop = close_at if close_at > open_at else len(text)
    return text[word_at:open_at], text[open_at + 1 : stop]


def _operation(arguments: str) -> str:
    """Name of the functor or kernel lambda that a wrapper was instantiated with, "" when none is recognised."""
    for match in _WORD.finditer(arguments):
        word = next((g for g in match.groups() if g), "")
        if word and word not in _BORING:
            return word.removesuffix("_kernel").strip("_")
    words = (match[1] for match in _ARGUMENT.finditer(arguments))
    word = next((w for w in words if w not in _TYPES and not w.startswith("gpu_kernel_impl")), "")
    return re.sub(r"_?[kK]ernel(?:Impl(?:Internal)?|_cuda|_impl)?$", "", word)
