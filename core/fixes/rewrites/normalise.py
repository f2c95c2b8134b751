"""A batch of bytes that is converted and normalised in several passes: one operator does it in one."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from fractions import Fraction

from core.fixes.naming import torch_name
from core.fixes.source_text import NotApplicable, Place, SourceText, calls, dotted

LONGEST_DECIMALS = 6  # of a factor that is written out; others stay a fraction


@dataclass(frozen=True)
class _Line:
    """``scale * x + shift``, exactly."""

    scale: Fraction
    shift: Fraction
    passes: int


def in_one_pass(source: SourceText, place: Place) -> tuple[str, str]:
    """``(x.to(torch.float32) / 255 - 0.5) / 0.5`` -> ``torch.add(-1.0, x, alpha=2 / 255)``.

    The operator reads the bytes and writes the floats: nothing lies in between. Its first argument is a plain number,
    which gives the result its type and is handed to the kernel by value: no tensor is made of it in each step.
    """
    scope = source.scope(place)
    torch = torch_name(source, scope)
    found = []
    for call in calls(scope):
        batch = _converted(call, torch)
        if batch is not None:
            top, line = _folded(source, call)
            if line.passes >= 2:
                found.append((top, batch, line))
    near = [entry for entry in found if place.touches(source.statement(entry[0]))]
    chosen = near or found
    if not chosen:
        raise NotApplicable(
            "the passes are not one expression of a conversion to float32 and plain numbers (with a mean and a spread "
            "for each channel, or in several statements, it has to be merged by hand or compiled)"
        )
    if len(chosen) > 1:
        raise NotApplicable("several batches are normalised here")
    top, batch, line = chosen[0]
    shift, scale = _written(line.shift, always_float=True), _written(line.scale)
    source.replace(top, f"{torch}.add({shift}, {source.of(batch)}, alpha={scale})")
    return (
        f"Convert and normalise the batch in one pass: {torch}.add(a, x, alpha=b) works out a + b · x.",
        "Only for batches of whole numbers (bytes), as this one was when it was recorded. The result may differ in the "
        "last digit.",
    )


def _converted(call: ast.Call, torch: str) -> ast.expr | None:
    """What is converted to float32 by ``x.float()`` or ``x.to(torch.float32)``; None for any other call."""
    function = call.func
    if not isinstance(function, ast.Attribute) or not dotted(function.value):
        return None
    if function.attr == "float" and not call.args and not call.keywords:
        return function.value
    kinds = (f"{torch}.float32", f"{torch}.float")
    given = call.args if not call.keywords else [k.value for k in call.keywords if k.arg == "dtype"]
    if function.attr == "to" and len(call.args) + len(call.keywords) == 1 and len(given) == 1:
        return function.value if dotted(given[0]) in kinds else None
    return None


def _folded(source: SourceText, call: ast.Call) -> tuple[ast.expr, _Line]:
    """The largest expression around a call that only scales and shifts it by numbers."""
    top: ast.expr = call
    line = _Line(Fraction(1), Fraction(0), 0)
    while isinstance(above := source.parent(top), ast.BinOp):
        other = _number(above.right if above.left is top else above.left)
        next_line = _apply(line, above, above.left is top, other) if other is not None else None
        if next_line is None:
            break
        top, line = above, next_line
    return top, line


def _apply(line: _Line, node: ast.BinOp, is_left: bool, other: Fraction) -> _Line | None:
    scale, shift, passes = line.scale, line.shift, line.passes + 1
    match node.op:
        case ast.Mult():
            return _Line(scale * other, shift * other, passes)
        case ast.Add():
            return _Line(scale, shift + other, passes)
        case ast.Sub():
            return _Line(scale, shift - other, passes) if is_left else _Line(-scale, other - shift, passes)
        case ast.Div() if is_left and other != 0:
            return _Line(scale / other, shift / other, passes)
    return None


def _number(node: ast.expr) -> Fraction | None:
    """Value of a number as it is written; decimals are taken as decimals."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _number(node.operand)
        return -value if value is not None else None
    if not isinstance(node, ast.Constant) or type(node.value) not in (int, float):
        return None
    try:
        return Fraction(repr(node.value))
    except ValueError:  # inf
        return None


def _written(value: Fraction, *, always_float: bool = False) -> str:
    decimal = repr(float(value))
    if Fraction(decimal) == value and len(decimal.partition(".")[2]) <= LONGEST_DECIMALS:
        whole = value.denominator == 1 and not always_float
        return str(value.numerator) if whole else decimal
    return f"{value.numerator} / {value.denominator}"
