"""Switches for a whole program or model: TF32, cuDNN search, autocast, compile, channels-last."""

from __future__ import annotations

import ast
import contextlib
from dataclasses import dataclass

from core.fixes.naming import add_switch, local_names, torch_name, torch_word
from core.fixes.source_text import (
    FunctionNode,
    NotApplicable,
    Place,
    SourceText,
    calls,
    dotted,
    names_read,
    names_written,
)


def tf32(source: SourceText, place: Place) -> tuple[str, str]:
    """Allow TF32 in matrix products."""
    if "set_float32_matmul_precision" in source.text or "allow_tf32" in source.text:
        raise NotApplicable("the file sets the precision of matrix products already")
    add_switch(source, f'{torch_name(source)}.set_float32_matmul_precision("high")')
    return (
        "Let float32 matrix products use the tensor cores (TF32).",
        "Products keep about 10 bits of mantissa instead of 23: losses differ in the third digit or so.",
    )


def cudnn_benchmark(source: SourceText, place: Place) -> tuple[str, str]:
    """Let cuDNN search for the fastest convolution."""
    if "cudnn.benchmark" in source.text:
        raise NotApplicable("the file sets cudnn.benchmark already")
    if "cudnn.deterministic" in source.text or "use_deterministic_algorithms" in source.text:
        raise NotApplicable("the file asks for the same results each time, which the search does not give")
    add_switch(source, f"{torch_name(source)}.backends.cudnn.benchmark = True")
    return (
        "Let cuDNN try its algorithms once and keep the fastest.",
        "Every new input shape is searched anew: only for inputs of one shape. Results are less repeatable.",
    )


MOVES = ("to", "cuda")
MOST_CALLERS = 3  # functions that hand a model on


@dataclass(frozen=True)
class Step:
    """The heart of a training loop: the statements from the model's call to the loss, and the model's name."""

    first: ast.stmt
    last: ast.stmt
    call: ast.Call
    model: str


def find_step(source: SourceText, place: Place) -> Step:
    """Find the forward part of the training step in the scope of a place, else in the whole file.

    Raises
    ------
    NotApplicable
        When there is no ``loss.backward()`` whose loss comes from calls in the same block.
    """
    scopes: list[ast.AST] = [source.tree]
    with contextlib.suppress(NotApplicable):
        scopes.insert(0, source.scope(place))
    for scope in scopes:
        backward = [
            c
            for c in calls(scope)
            if isinstance(c.func, ast.Attribute) and c.func.attr == "backward" and isinstance(c.func.value, ast.Name)
        ]
        if len(backward) == 1:
            return _step_before(source, backward[0])
    raise NotApplicable("no single loss.backward() in this file")


def _step_before(source: SourceText, backward: ast.Call) -> Step:
    assert isinstance(backward.func, ast.Attribute)
    statement = source.statement(backward)
    block = source.block_of(statement)
    wanted = {dotted(backward.func.value)}
    chain: list[ast.Assign] = []
    for node in reversed(block[: block.index(statement)]):
        parts = ast.Attribute | ast.Subscript | ast.BinOp  # outputs.loss, loss / 4
        leads = isinstance(node, ast.Assign) and (_is_forward(node.value) or isinstance(node.value, parts))
        if isinstance(node, ast.Assign) and leads and names_written(node) & wanted:
            chain.append(node)
            wanted |= names_read(node.value)
    if not chain:
        raise NotApplicable("the loss is not worked out beside its backward()")
    for node in reversed(chain):
        for call in calls(node.value):
            if _is_forward(call) and _is_model(source, call):
                return Step(node, chain[0], call, dotted(call.func))
    raise NotApplicable("the model is not called by a plain name")


def _is_model(source: SourceText, call: ast.Call) -> bool:
    """Whether what is called was built by an assignment or handed in, as opposed to a function or a class."""
    name = dotted(call.func)
    if name.startswith("self.") and name.count(".") == 1:
        return True
    function = source.function_of(call)
    parameters = local_names(function) if function is not None else set()
    assigned = {dotted(t) for n in ast.walk(source.tree) if isinstance(n, ast.Assign) for t in n.targets}
    return name in parameters or name in assigned


def _is_forward(node: ast.expr) -> bool:
    """A call of a model, a loss or a function, as opposed to the move of a batch."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Call):  # nn.CrossEntropyLoss()(out, y)
        return True
    name = node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)
    return (
        bool(name)
        and not name[0].isupper()
        and name not in ("to", "cuda", "float", "half", "next", "detach", "zero_grad", "permute", "view")
    )


def autocast(source: SourceText, place: Place) -> tuple[str, str]:
    """Put the forward part of the step under ``torch.autocast``."""
    if "autocast" in source.text:
        raise NotApplicable("the file uses autocast already")
    if "BCELoss" in source.text or "binary_cross_entropy(" in source.text:
        raise NotApplicable("binary cross-entropy of probabilities stops with an error there: use its with_logits form")
    step = find_step(source, place)
    if any(isinstance(c.func, ast.Attribute) and c.func.attr == "numpy" for c in calls(_around(source, step))):
        raise NotApplicable("the step turns something into numpy, which has no bfloat16")
    block = source.block_of(step.first)
    between = block[block.index(step.first) : block.index(step.last) + 1]
    if any(isinstance(n, ast.Return | ast.Break | ast.Continue) for s in between for n in ast.walk(s)):
        raise NotApplicable("the step leaves its loop between the model and the loss")
    torch = torch_name(source, step.first)
    source.insert_line_before(
        step.first, f"with {torch}.autocast({_device_type(source, step)}, dtype={torch}.bfloat16):"
    )
    source.indent_more(step.first, step.last)
    return (
        "Run the forward pass in bfloat16 where that is safe; the tensor cores then do the products.",
        "Losses differ by rounding. bfloat16 needs compute capability 8.0 or newer to be fast.",
    )


def _device_type(source: SourceText, step: Step) -> str:
    """The type of device that the step's input is on: asked of the input where this file shows that it is a tensor."""
    first = step.call.args[0] if step.call.args else None
    if isinstance(first, ast.Name):
        for node in ast.walk(_around(source, step)):
            if isinstance(node, ast.Assign) and first.id in names_written(node) and _is_moved(node.value):
                return f"{first.id}.device.type"
    return '"cuda"'


def _around(source: SourceText, step: Step) -> ast.AST:
    return source.function_of(step.first) or source.tree


def _is_moved(value: ast.expr) -> bool:
    """``x.to(device)``, alone or as one of several: what has been moved is a tensor."""
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    return all(isinstance(p, ast.Call) and isinstance(p.func, ast.Attribute) and p.func.attr in MOVES for p in parts)


def compile_model(source: SourceText, place: Place) -> tuple[str, str]:
    """``model = torch.compile(model)`` below the place where the model is built."""
    step = find_step(source, place)
    compiling = (f"{torch_word(source)}.compile", f"{step.model}.compile")  # a call, or a decorator
    if any(isinstance(node, ast.Attribute) and dotted(node) in compiling for node in ast.walk(source.tree)):
        raise NotApplicable("something is compiled already")
    statement, model = _built(source, step)
    in_place = "state_dict" in source.text  # which has other names for what torch.compile returns
    line = f"{model}.compile()" if in_place else f"{model} = {torch_name(source, statement)}.compile({model})"
    source.insert_line_after(statement, line)
    return "Compile the model: fewer and larger kernels, less work for the CPU.", (
        "The first steps take much longer, and every new shape compiles again. "
        + ("Needs torch 2.2 or newer." if in_place else "Names in the state dict gain the prefix _orig_mod.")
    )


def channels_last(source: SourceText, place: Place) -> tuple[str, str]:
    """Model and batch in channels-last layout."""
    if "channels_last" in source.text:
        raise NotApplicable("the file uses channels_last already")
    if any(isinstance(c.func, ast.Attribute) and c.func.attr == "view" for c in calls(source.tree)):
        raise NotApplicable("the file calls view(), which fails on this layout: make it reshape() first")
    step = find_step(source, place)
    if not step.call.args or isinstance(step.call.args[0], ast.Starred):
        raise NotApplicable("the model is called without a plain argument")
    torch = torch_name(source, step.first)
    layout = f".to(memory_format={torch}.channels_last)"
    statement, model = _built(source, step)
    source.insert_line_after(statement, f"{model} = {model}{layout}")
    batch = step.call.args[0]
    text = source.of(batch)
    source.replace(
        batch, f"{text}{layout}" if isinstance(batch, ast.Name | ast.Attribute | ast.Call) else f"({text}){layout}"
    )
    return (
        "Keep images in channels-last order, the order that the convolution kernels want.",
        "Only for inputs with four dimensions; results differ by rounding. A view() of an image inside the model stops "
        "with an error: reshape() takes both layouts.",
    )


def _built(source: SourceText, step: Step) -> tuple[ast.stmt, str]:
    """Last statement that assigns the model before the step, and the model's name there.

    Where the step is in a function that is handed the model, as ``train_epoch(model, loader)`` is, that is in the
    function that calls it.
    """
    before, name = step.first, step.model
    for _ in range(MOST_CALLERS):
        if (statement := _assigned(source, name, before)) is not None:
            return statement, name
        if (handed := _handed(source, name, before)) is None:
            break
        before, name = handed
    raise NotApplicable("the model is not built in the function that trains it, nor in one that hands it over")


def _handed(source: SourceText, name: str, within: ast.stmt) -> tuple[ast.stmt, str] | None:
    """The first call of this file that hands a function its parameter, and what it hands over; None if they differ."""
    function = source.function_of(within)
    if not isinstance(function, ast.FunctionDef) or source.parent(function) is not source.tree:
        return None
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    if name not in names:
        return None
    found = [c for c in calls(source.tree) if dotted(c.func) == function.name and source.function_of(c) is not function]
    given = {dotted(_argument(call, names.index(name), name)) for call in found}
    scopes = {source.function_of(call) for call in found}
    if len(given) != 1 or len(scopes) != 1 or not (handed := given.pop()):
        return None
    return source.statement(min(found, key=lambda c: c.lineno)), handed


def _argument(call: ast.Call, at: int, name: str) -> ast.expr | None:
    """What a call gives for a parameter; None where that cannot be told."""
    if any(isinstance(a, ast.Starred) for a in call.args):
        return None
    if at < len(call.args):
        return call.args[at]
    return next((k.value for k in call.keywords if k.arg == name), None)


def _assigned(source: SourceText, name: str, before: ast.stmt) -> ast.stmt | None:
    """Last statement that assigns a name before another one, in a block that lasts until then; None where none does.

    Where it is assigned under a condition, that is the whole ``if``.
    """
    around = {source.tree, *source.parents(before)}
    found: list[ast.stmt] = []
    for node in ast.walk(source.tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        if not any(dotted(t) == name for t in targets) or source.loop_of(node) is not None:
            continue
        above: ast.AST | None = node
        while isinstance(above, ast.stmt) and source.parent(above) not in around:
            above = source.parent(above)
            if not isinstance(above, ast.If | ast.Try | ast.With):
                above = None
        if isinstance(above, ast.stmt) and above.lineno < before.lineno and above not in around:
            found.append(above)
    return max(found, key=lambda n: n.lineno, default=None)


def no_compile(source: SourceText, place: Place) -> tuple[str, str]:
    """``torch.compile(x)`` -> ``x``; of ``@torch.compile`` the line goes."""
    name = f"{torch_word(source)}.compile"
    found: list[ast.expr] = [c for c in calls(source.tree) if dotted(c.func) == name and len(c.args) == 1]
    decorated = {
        d: node
        for node in ast.walk(source.tree)
        if isinstance(node, FunctionNode | ast.ClassDef)
        for d in node.decorator_list
        if dotted(d.func if isinstance(d, ast.Call) else d) == name
    }
    found += decorated
    near = [c for c in found if place.touches(decorated.get(c) or source.statement(c))]
    chosen = near or found
    if len(chosen) != 1:
        raise NotApplicable("no torch.compile(...) in this file" if not chosen else "several things are compiled")
    call = chosen[0]
    if call in decorated:
        source.delete_decorator(call)
    elif isinstance(call, ast.Call):
        statement, given = source.statement(call), source.of(call.args[0])
        itself = isinstance(statement, ast.Assign) and [source.of(t) for t in statement.targets] == [given]
        if itself and isinstance(statement, ast.Assign) and statement.value is call:
            source.delete(statement)
        else:
            source.replace(call, given)
    return "Run it without compiling: here the compiled form costs more than it saves.", "None for values but rounding."
