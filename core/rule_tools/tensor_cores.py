"""Matrix products and convolutions that tensor cores could compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from core.rule_tools.facts import Facts
from core.rule_tools.kernel_names import compute_major, is_gemm, is_nvidia, kernels_by_name
from core.rule_tools.report import total_ns
from core.rule_tools.subjects import need
from core.sets import distinct
from core.suggestions import NotChecked
from core.tables import I32


def require_capability(facts: Facts, major: int, unknown: str, older: str) -> int:
    """Major compute capability of the GPU in use.

    Parameters
    ----------
    facts
        Look-ups.
    major
        The first one that has what the rule is about.
    unknown, older
        Why the rule cannot decide where the capability is not in the trace, and where it is too old.

    Raises
    ------
    NotChecked
        Where the GPU is none of NVIDIA's, unknown or older, or where it computed no product.
    """
    if not is_nvidia(facts):
        raise NotChecked("The trace shows no GPU of NVIDIA, whose tensor cores this is about.")
    found = compute_major(facts)
    if found is None or found < major:
        raise NotChecked(unknown if found is None else older)
    products = any(is_gemm(name) for name, _, _ in kernels_by_name(facts))
    need(products, "no kernel of the trace is a matrix product or a convolution.")
    return found


def products(facts: Facts, fits: Callable[[str], bool]) -> I32:
    """int32[k]: kernels of products and convolutions with a fitting name, the name that takes longest first."""
    picked = [ids for name, ids, _ in kernels_by_name(facts) if is_gemm(name) and fits(name)]
    return np.concatenate(picked) if picked else np.empty(0, dtype=np.int32)


def product_values(facts: Facts, work: I32, factor: float) -> dict[str, Any]:
    """Named values for texts: how many products, how long they take, and the share of it that is assumed to be left."""
    took = total_ns(facts, work)
    return {
        "share_pct": 100 * took / max(facts.kernel_ns, 1),
        "count": len(work),
        "took_ms": took / 1e6,
        "left_pct": 100 * factor,
    }


def launching_ops(facts: Facts, work: I32) -> I32:
    """int32[k]: operators that launched these kernels, in order of their ids."""
    ops = distinct(facts.trace.links.op_of[work])
    return ops[ops >= 0]
