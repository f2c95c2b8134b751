"""Fixes that are an argument of a call: loaders, copies, optimizers, gradients."""

from __future__ import annotations

import ast

from core.fixes.naming import add_import, imported_as, origin_of
from core.fixes.rewrites.step import to_host
from core.fixes.source_text import Loop, NotApplicable, Place, SourceText, bracketed, calls, dotted

FUSED = {"Adam", "AdamW", "SGD"}  # Adagrad has a fused form for the CPU alone
AT_WORKERS, AT_PIN_MEMORY = 5, 7  # positions of these parameters of DataLoader
FOREACH = {"Adagrad", "Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"}


def set_argument(source: SourceText, call: ast.Call, name: str, value: str) -> bool:
    """Set a keyword argument of a call, or add it; return whether anything changed."""
    if any(k.arg is None for k in call.keywords):
        raise NotApplicable("the arguments are passed with **")
    for keyword in call.keywords:
        if keyword.arg == name:
            if source.of(keyword.value) == value:
                return False
            if not isinstance(keyword.value, ast.Constant):
                raise NotApplicable(f"{name} is decided elsewhere, as {source.of(keyword.value)}: set it there")
            source.replace(keyword.value, value)
            return True
    add_argument(source, call, f"{name}={value}")
    return True


def add_argument(source: SourceText, call: ast.Call, text: str) -> None:
    """Add an argument behind the last one, on a line of its own where the arguments have theirs."""
    arguments: list[ast.expr | ast.keyword] = sorted(
        [*call.args, *call.keywords], key=lambda a: (a.lineno, a.col_offset)
    )
    if not arguments:
        whole = source.of(call)
        source.replace_tail(call, len(whole) - whole.rindex("("), f"({text})")
        return
    last = arguments[-1]
    rows = [a.lineno for a in arguments]
    own_line = len(set(rows)) == len(rows) and last.lineno != call.lineno and len(rows) > 1
    if own_line:
        indent = source.lines[last.lineno - 1][: last.col_offset]
        source.insert_argument(last, f"{indent if not indent.strip() else ' ' * last.col_offset}{text}")
    else:
        source.insert_after(last, f", {text}")


def zero_to_none(source: SourceText, place: Place) -> tuple[str, str]:
    """``zero_grad()`` -> ``zero_grad(set_to_none=True)``."""
    found = [c for c in calls(source.scope(place)) if _method(c) == "zero_grad"]
    for own in ast.walk(source.tree):
        if isinstance(own, ast.FunctionDef) and own.name == "zero_grad" and "set_to_none" not in source.of(own):
            raise NotApplicable("a zero_grad of this file knows no set_to_none")
    changed = [set_argument(source, c, "set_to_none", "True") for c in found if not c.args]
    for call in found:
        if len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and not call.args[0].value:
            source.replace(call.args[0], "True")
            changed.append(True)
    if not any(changed):
        raise NotApplicable("no call of zero_grad to change")
    return (
        "Drop the gradients instead of filling them with zeros.",
        "p.grad is None until the next backward pass: code that reads it in between must cope, and a parameter that a "
        "step does not use is not moved by momentum or weight decay in it.",
    )


def copy_without_blocking(source: SourceText, place: Place) -> tuple[str, str]:
    """``.to(device)`` of a batch -> ``non_blocking=True``, from a loader with ``pin_memory=True``."""
    scope = source.scope(place)
    found = [c for c in calls(scope) if _is_batch_copy(source, c)]
    near = [c for c in found if place.touches(source.statement(c))]
    moves = [c for c in (found if near or not place.exact else []) if not _chosen(c, "non_blocking")]
    loaders = [c for c in loaders_of(source, place) if not _chosen(c, "pin_memory")]
    for call in loaders:
        _check_by_name(call, AT_PIN_MEMORY)
    for call in moves:
        set_argument(source, call, "non_blocking", "True")
    for call in loaders:
        set_argument(source, call, "pin_memory", "True")
    if not moves and not loaders:
        raise NotApplicable("no copy of a batch that waits and no DataLoader without pinned memory in this file")
    return (
        "Copy from pinned memory, without waiting for the copy.",
        "Pinned memory cannot be swapped out: large batches take that much RAM. Do not change the host tensor "
        "before the copy is done.",
    )


def loader_with_workers(source: SourceText, place: Place) -> tuple[str, str]:
    """``DataLoader(...)`` -> with worker processes that are kept."""
    changed, elsewhere = False, ""
    if "IterableDataset" in source.text:
        raise NotApplicable("an IterableDataset gives each worker all of the data, unless it divides them itself")
    for call in _required_loaders(source, place):
        _check_by_name(call, AT_WORKERS)
        data = call.args[0] if call.args else _keyword(call, "dataset")
        if data is not None and any(_method(c) in ("to", "cuda") for c in calls(data)):
            raise NotApplicable("the data set is on the device already, where no worker can help")
        workers = _keyword(call, "num_workers")
        if workers is not None and not isinstance(workers, ast.Constant):
            elsewhere = ast.unparse(workers)
        if workers is None or (isinstance(workers, ast.Constant) and workers.value == 0):
            if not imported_as(source, "os"):
                add_import(source, "import os")
            cpus = f"{imported_as(source, 'os') or 'os'}.cpu_count()"
            set_argument(source, call, "num_workers", f"min(4, {cpus} or 1)")
            set_argument(source, call, "persistent_workers", "True")
            changed = True
    if not changed and elsewhere:
        raise NotApplicable(f"the number of workers is worked out elsewhere, as {elsewhere}: set it there")
    if not changed:
        raise NotApplicable("the loaders have workers already")
    risk = "The data set is copied to each worker: random numbers in it then come from the worker's own seed."
    risk += _other_order(source, place)
    if not _has_main_guard(source):
        risk += " Where processes are spawned (Windows, macOS), the script needs an if __name__ == '__main__' guard."
    return "Load batches in worker processes, while the step computes.", risk


def loader_prefetch(source: SourceText, place: Place) -> tuple[str, str]:
    """``DataLoader(num_workers=n)`` -> fetches further ahead, keeps its workers."""
    changed = False
    for call in _required_loaders(source, place):
        workers = _keyword(call, "num_workers")
        if workers is None or not isinstance(workers, ast.Constant) or not workers.value:
            continue  # where it is worked out elsewhere it may be none, and the arguments be refused
        if not _chosen(call, "persistent_workers"):
            changed |= set_argument(source, call, "persistent_workers", "True")
        if _keyword(call, "prefetch_factor") is None:
            changed |= set_argument(source, call, "prefetch_factor", "4")
    if not changed:
        raise NotApplicable("no loader with workers to change")
    return (
        "Let the workers fetch further ahead, and keep them from epoch to epoch.",
        "More batches wait in memory: prefetch_factor times the number of workers." + _other_order(source, place),
    )


def keep_workers(source: SourceText, place: Place) -> tuple[str, str]:
    """``persistent_workers=True``."""
    changed = False
    for call in _required_loaders(source, place):
        workers = _keyword(call, "num_workers")
        if source.loop_of(call) is not None and source.statement(call) is not source.loop_of(call):
            raise NotApplicable("the loader is built anew in a loop, and its workers with it: build it before the loop")
        if workers is None or _chosen(call, "persistent_workers"):
            continue
        if not isinstance(workers, ast.Constant):  # with none, the argument is refused
            changed |= set_argument(source, call, "persistent_workers", f"{bracketed(source, workers)} > 0")
        elif workers.value != 0:
            changed |= set_argument(source, call, "persistent_workers", "True")
    if not changed:
        raise NotApplicable("no loader with workers to change")
    risk = "The workers' memory stays in use between epochs." + _other_order(source, place)
    return "Keep the workers from epoch to epoch.", risk


def _other_order(source: SourceText, place: Place) -> str:
    """What kept workers mean for a loader that draws its order: each new iterator draws a seed, theirs draws none."""
    orders = [_keyword(call, name) for call in loaders_of(source, place) for name in ("shuffle", "sampler")]
    if not any(o is not None and not (isinstance(o, ast.Constant) and not o.value) for o in orders):
        return ""
    return (
        " Kept workers draw one random number less an epoch: under the same seed the data come in another order from "
        "the second epoch on, and the losses differ by that."
    )


def optimizer_in_one_kernel(source: SourceText, place: Place) -> tuple[str, str]:
    """``AdamW(...)`` -> ``AdamW(..., fused=True)``, or ``foreach=True`` where there is no fused form."""
    named = [c for c in calls(source.tree) if dotted(c.func).rpartition(".")[2] in FUSED | FOREACH]
    found = [c for c in named if _is_torchs(source, dotted(c.func))]
    if named and not found:
        raise NotApplicable(f"{dotted(named[0].func)} is not torch's own, and may have no such option")
    if len(near := [c for c in found if place.exact and place.touches(source.statement(c))]) == 1:
        found = near
    if len(found) != 1:
        raise NotApplicable("no optimizer is built in this file" if not found else "several optimizers are built")
    if "sparse=True" in source.text.replace(" ", ""):
        raise NotApplicable("the file asks for sparse gradients, which these kernels do not take")
    call = found[0]
    if _has(call, "capturable", True) or _has(call, "differentiable", True):
        raise NotApplicable("the optimizer has options that exclude it")
    if dotted(call.func).rpartition(".")[2] in FUSED:
        other, own = _keyword_of(call, "foreach"), _keyword_of(call, "fused")
        if other is not None and not isinstance(other.value, ast.Constant):
            raise NotApplicable(f"foreach is decided elsewhere, as {source.of(other.value)}: set it there")
        if other is not None and own is None:  # the two exclude each other
            source.replace(other, "fused=True")
        else:
            if other is not None:
                source.replace(other.value, "None")
            set_argument(source, call, "fused", "True")
        return (
            "Update all parameters in a few kernels.",
            "Needs torch 2.0 or newer (SGD: 2.3) and parameters of floating type on one kind of device; "
            "results differ by rounding.",
        )
    set_argument(source, call, "foreach", "True")
    return "Update all parameters in a few kernels.", "Takes as much extra memory as the parameters for a moment."


def _is_torchs(source: SourceText, name: str) -> bool:
    """Whether an optimizer is one of ``torch.optim``, by the imports of the file."""
    origin = origin_of(source, name)
    own = any(isinstance(n, ast.ClassDef) and n.name == name for n in source.tree.body)
    return origin.startswith("torch.optim.") or (not origin and name.startswith(("torch.optim.", "optim.")) and not own)


def _check_by_name(call: ast.Call, at: int) -> None:
    """An argument that is handed over by position cannot be named a second time."""
    if len(call.args) > at or any(isinstance(a, ast.Starred) for a in call.args):
        raise NotApplicable("the loader's arguments are passed by position")


def _is_loader(source: SourceText, name: str) -> bool:
    """Whether a class is torch's DataLoader or one that takes its arguments; not one of the user's own."""
    if name.rpartition(".")[2] != "DataLoader":
        return False
    origin = origin_of(source, name)
    own = any(isinstance(n, ast.ClassDef) and n.name == name for n in source.tree.body)
    return not own and (not origin or origin.startswith(("torch", "monai")))


def loaders_of(source: SourceText, place: Place) -> list[ast.Call]:
    """DataLoaders of the file: the one at the place, those that the place's loops go over, else all of them."""
    found = [c for c in calls(source.tree) if _is_loader(source, dotted(c.func))]
    if place.exact and (here := [c for c in found if c.lineno == place.line]):
        return here
    try:
        scope = source.scope(place)
    except NotApplicable:
        return found
    walked = {n for loop in ast.walk(scope) if isinstance(loop, Loop) and not isinstance(loop, ast.While)
              for n in ast.walk(loop.iter)}  # fmt: skip
    names = {dotted(n) for n in walked if isinstance(n, ast.Name | ast.Attribute)}
    chosen = [c for c in found if c in walked or any(name in names for name in _targets(source, c))]
    return chosen or found


def _targets(source: SourceText, call: ast.Call) -> list[str]:
    statement = source.statement(call)
    return [dotted(t) for t in statement.targets] if isinstance(statement, ast.Assign) else []


def _required_loaders(source: SourceText, place: Place) -> list[ast.Call]:
    found = loaders_of(source, place)
    if not found:
        raise NotApplicable("no DataLoader is built in this file")
    return found


def _is_batch_copy(source: SourceText, call: ast.Call) -> bool:
    """``x.to(device)`` or ``x.cuda()`` of a plain value; not of a model, and not a change of type."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return False
    if _method(call) == "cuda":
        if len(call.args) > 1:
            return False
    elif _method(call) == "to":
        first = call.args[0] if call.args else _keyword(call, "device")
        if first is None or _is_type(first) or len(call.args) > 2:  # the third is non_blocking
            return False
        if to_host(first) or _is_host_name(source, first):  # nobody would wait for it before it is read
            return False
    else:
        return False
    assert isinstance(call.func, ast.Attribute)
    value = call.func.value
    statement = source.statement(call)
    kept = (
        isinstance(statement, ast.Expr) and statement.value is call
    )  # model.to(device) as a statement moves a module in place
    plain = isinstance(value, ast.Name | ast.Subscript | ast.Attribute)
    return source.loop_of(call) is not None and not kept and plain and not _is_model(source, dotted(value))


def _is_model(source: SourceText, name: str) -> bool:
    """Whether a name is called somewhere, or asked for its parameters: it is a module, not a batch."""
    asked = {f"{name}.{of}" for of in ("parameters", "train", "eval", "state_dict", "load_state_dict")}
    return bool(name) and any(dotted(c.func) == name or dotted(c.func) in asked for c in calls(source.tree))


def _is_host_name(source: SourceText, node: ast.expr) -> bool:
    """Whether a name holds the CPU, as in ``host = torch.device("cpu")``."""
    name = dotted(node)
    if not name or "dev" in name.lower():  # the device of a script that can do without a GPU: nothing is copied then
        return False
    values = [n.value for n in ast.walk(source.tree) if isinstance(n, ast.Assign) and name in map(dotted, n.targets)]
    return any(to_host(value) and not isinstance(value, ast.IfExp | ast.BoolOp) for value in values)


def _is_type(node: ast.expr) -> bool:
    last = dotted(node).rpartition(".")[2]
    return last.rstrip("0123456789") in ("float", "int", "uint", "bfloat", "half", "double", "long", "bool", "dtype")


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _keyword_of(call: ast.Call, name: str) -> ast.keyword | None:
    return next((k for k in call.keywords if k.arg == name), None)


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((k.value for k in call.keywords if k.arg == name), None)


def _has(call: ast.Call, name: str, value: object) -> bool:
    node = _keyword(call, name)
    return isinstance(node, ast.Constant) and node.value is value


def _chosen(call: ast.Call, name: str) -> bool:
    """Whether an argument is on, or depends on something (``pin_memory=device.type == "cuda"``): that is left alone."""
    node = _keyword(call, name)
    return node is not None and not (isinstance(node, ast.Constant) and not node.value)


def _has_main_guard(source: SourceText) -> bool:
    return any(isinstance(n, ast.If) and "__name__" in ast.dump(n.test) for n in source.tree.body)
