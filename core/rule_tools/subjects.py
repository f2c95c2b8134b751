"""What a rule looks at: where a trace holds none of it, the rule was not checked, which is not the same as clean."""

from __future__ import annotations

from collections.abc import Sized

from core.suggestions import NotChecked

COLLECTIVES = "the trace holds no communication between GPUs."
COMPILED = "the trace marks no region as compiled by torch.compile."
CONVOLUTIONS = "the trace holds no convolution."
GPU_MEMORY = "no memory events of the GPU lie in the steps."
LAUNCHES = "none of the GPU's work can be linked to the call that launched it."
LOADER = "the trace holds no DataLoader. A loop that reads its data in another way leaves no mark."
OPTIMIZER = "the trace holds no step of an optimizer of torch."
PARALLEL = "the trace holds no DistributedDataParallel."
PRODUCTS = "the trace holds no matrix product."


def need(found: Sized | bool, lacking: str) -> None:
    """Raise `NotChecked` where there is nothing that a rule could judge.

    Parameters
    ----------
    found
        What the rule looks at (or whether there is any).
    lacking
        The end of the sentence "There was nothing to look at: ...", with a full stop.
    """
    if not (found if isinstance(found, bool) else len(found)):
        raise NotChecked(f"There was nothing to look at: {lacking}")
