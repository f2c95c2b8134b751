"""Attention written out as separate operators."""

from __future__ import annotations

import numpy as np

from core.rule_tools.chains import sibling_rows
from core.rule_tools.facts import Facts

_PRODUCTS = ("aten::bmm", "aten::matmul", "aten::baddbmm", "aten::einsum")
_SOFTMAX = ("aten::softmax", "aten::_softmax")
_BETWEEN = frozenset(
    (
        "aten::div",
        "aten::mul",
        "aten::add",
        "aten::masked_fill",
        "aten::masked_fill_",
        "aten::dropout",
        "aten::where",
        "aten::div_",
        "aten::mul_",
        "aten::add_",
        "aten::native_dropout",
        "aten::clone",
        "aten::copy_",
        "aten::type_as",
        "aten::max",
        "aten::maximum",
        "aten::sub",
        "aten::float",
        "aten::eq",
        "aten::softmax",
        "aten::_softmax",
        "aten::lt",
        "aten::tensor",
        "aten::all",
        "aten::bernoulli_",
        "aten::bitwise_not",  # masks are made where they are used: ~mask, (1 - mask) * -1e4, i <= j
        "aten::bitwise_and",
        "aten::logical_not",
        "aten::logical_and",
        "aten::rsub",
        "aten::ge",
        "aten::gt",
        "aten::le",
        "aten::ne",
        "aten::full",
        "aten::ones",
        "aten::tril",
        "aten::triu",
        "aten::tril_",
        "aten::triu_",
    )
)
# Operators of torch that hold attention in parts of their own: there is nothing of the program's to replace.
_OF_TORCH = ("aten::_native_multi_head_attention", "aten::_transformer_encoder_layer_fwd")
_REACH = 12  # operators between the products: scaling, masks, softmax, dropout


def find_attention(facts: Facts) -> list[list[int]]:
    """Op ids of each attention: first product, what lies between, softmax, second product."""
    strings = facts.trace.strings
    products = {strings.id_of(n) for n in _PRODUCTS} - {-1}
    softmax = {strings.id_of(n) for n in _SOFTMAX} - {-1}
    between = {strings.id_of(n) for n in _BETWEEN} - {-1}
    names = facts.trace.slices.name_id
    if not products or not softmax:
        return []
    held = facts.memo.get("attention")
    if held is not None:
        return held  # type: ignore[no-any-return]
    out: list[list[int]] = facts.memo.setdefault("attention", [])
    middle, of_torch = facts.name_table(softmax), facts.ops(*_OF_TORCH)
    for row in sibling_rows(facts):
        if len(of_torch) and facts.inside(row[:1], of_torch)[0]:
            continue
        done = -1
        for at in middle[names[row]].nonzero()[0].tolist():
            before = _walk(names[row], int(at), -1, between, products, done)
            after = _walk(names[row], int(at), 1, between, products, -1)
            if before >= 0 and after >= 0:
                done = after
                out.append([int(i) for i in row[before : after + 1]])
    return out


def _walk(names: np.ndarray, at: int, way: int, between: set[int], products: set[int], stop: int) -> int:
    for reach in range(1, _REACH):
        spot = at + way * reach
        if not stop < spot < len(names) or spot < 0:
            return -1
        if int(names[spot]) in products:
            return spot
        if int(names[spot]) not in between:
            return -1
    return -1
