"""The module class that something is moved into, and what may be kept from step to step at all."""

from __future__ import annotations

import ast

from core.fixes.naming import MODULES, local_names, origin_of
from core.fixes.rewrites.sharing import check_same_after_init
from core.fixes.source_text import FunctionNode, NotApplicable, SourceText, calls, dotted, names_read

# Their parameters are drawn or trained: built anew they are others in each step, which a fix must not change unasked.
WITH_PARAMETERS = ("Linear", "Bilinear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d",
                   "ConvTranspose3d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "LayerNorm",
                   "GroupNorm", "RMSNorm", "Embedding", "EmbeddingBag", "RNN", "LSTM", "GRU", "RNNCell", "LSTMCell",
                   "GRUCell", "MultiheadAttention", "PReLU", "Parameter", "AdaptiveLogSoftmaxWithLoss")  # fmt: skip
WITH_STATE = ("Transformer", "Sequential", "ModuleList", "ModuleDict", "ParameterList")
OWN = "parameters or parts of its own: kept, it would not be new in each step"
ROOTS = ("torch.nn", "torchvision.transforms", "torchaudio.transforms", "kornia")


def method_of(source: SourceText, node: ast.AST, owner: ast.ClassDef) -> FunctionNode:
    """The method of a class that a node is in, where it is one with a ``self`` that is not called while it is built.

    Raises
    ------
    NotApplicable
        Otherwise.
    """
    above = list(source.parents(node))
    method = next((n for n in above if isinstance(n, FunctionNode) and source.parent(n) is owner), None)
    if method is None or method.name == "__init__":
        raise NotApplicable("it is not in a method that the step calls")
    first = [*method.args.posonlyargs, *method.args.args][:1]
    if not first or first[0].arg != "self" or any(d in ("staticmethod", "classmethod") for d in _decorators(method)):
        raise NotApplicable(f"{method.name} has no self")
    init = _init(owner)
    for call in calls(init) if init is not None else ():
        if dotted(call.func) in ("self", f"self.{method.name}"):
            raise NotApplicable(f"__init__ calls {method.name} itself")
    return method


def add_to_init(source: SourceText, owner: ast.ClassDef, method: FunctionNode, value: ast.expr, line: str) -> None:
    """Add a statement with a value of a method's at the end of ``__init__``, which is written where there is none.

    Raises
    ------
    NotApplicable
        Where it would not always run, or where the value would be another one there.
    """
    if owner.decorator_list:
        raise NotApplicable(f"{owner.name} has a decorator, which may write __init__")
    init = _init(owner)
    _check_same_there(source, init, method, value)
    if init is not None:
        last = init.body[-1]
        returns = [n for n in ast.walk(init) if isinstance(n, ast.Return) and source.function_of(n) is init]
        if any(n is not last for n in returns):
            raise NotApplicable("__init__ can be left before its end")
        if isinstance(last, ast.Return):
            source.insert_line_before(last, line)
        else:
            source.insert_line_after(last, line)
        return
    first = next((n for n in owner.body if isinstance(n, FunctionNode)), None)
    if first is None or len(owner.bases) != 1 or dotted(owner.bases[0]).rpartition(".")[2] not in MODULES:
        raise NotApplicable(f"{owner.name} has no __init__, and what its bases want is not known")
    step = source.indent_step()
    lines = ("def __init__(self):", f"{step}super().__init__()", f"{step}{line}", "")
    source.insert_line_before(first, *lines, over_comments=True)


def _check_same_there(source: SourceText, init: FunctionNode | None, method: FunctionNode, value: ast.expr) -> None:
    others = local_names(init) if init is not None else set()
    if names_read(value) & ((local_names(method) | others) - {"self"}):
        raise NotApplicable("a name in it means something else in __init__")
    check_same_after_init(source, value, init)


def check_stateless(source: SourceText, call: ast.Call) -> None:
    """An object may be kept when it has no state and no parameters of its own, as far as can be seen.

    Raises
    ------
    NotApplicable
        When it has, or when it is not known.
    """
    name = dotted(call.func)
    last = name.rpartition(".")[2]
    origin = origin_of(source, name) or name
    if ".optim" in origin:
        raise NotApplicable("an optimizer that is kept remembers earlier steps, which this one does not")
    for inner in calls(call):
        part = dotted(inner.func).rpartition(".")[2].removeprefix("Lazy")
        if part in WITH_PARAMETERS or part.startswith(WITH_STATE):
            raise NotApplicable(f"{part} has {OWN}")
    own = next((n for n in source.tree.body if isinstance(n, ast.ClassDef) and n.name == name), None)
    if own is not None:
        _check_own_class(own)
    elif not origin.startswith(ROOTS) and not last.endswith(("Loss", "Criterion")):
        raise NotApplicable(f"it is not known whether {last} changes from step to step")


def _check_own_class(own: ast.ClassDef) -> None:
    init = _init(own)
    at_first = set(ast.walk(init)) if init is not None else set()
    for node in ast.walk(own):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node not in at_first:
            raise NotApplicable(f"{own.name} changes when it is used")
        if isinstance(node, ast.Call):
            part = dotted(node.func).rpartition(".")[2]
            if part in WITH_PARAMETERS or part.startswith((*WITH_STATE, "rand")) or part.endswith("_"):
                raise NotApplicable(
                    f"{own.name} has parameters or parts of its own: kept, it would not be new in each step"
                )
    if not own.bases:
        raise NotApplicable(f"it is not known whether {own.name} changes from step to step")


def _init(owner: ast.ClassDef) -> FunctionNode | None:
    return next((n for n in owner.body if isinstance(n, FunctionNode) and n.name == "__init__"), None)


def _decorators(function: FunctionNode) -> list[str]:
    return [dotted(d) for d in function.decorator_list]
