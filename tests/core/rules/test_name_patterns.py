"""Names are found with the words that a pattern needs as they are found without."""

import random
import re

import pytest

from core.rule_tools.name_patterns import matching, required_words

NAMES = (
    "aten::add_", "aten::_fused_adam_", "Optimizer.step#Adam.step", "Optimizer.zero_grad#SGD.zero_grad",
    "torch/profiler/profiler.py(12): step", "torch/nn/modules/module.py(9): zero_grad", "cudaLaunchKernel",
    "torch\\nn\\modules\\module.py(9): zero_grad", "two\nlines Backward0", "", "vllm::all_reduce", "AddBackward0",
)  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"^Optimizer\.step#", ("Optimizer.step#",)),
        (r"_foreach_|_fused_|multi_tensor", ("_foreach_", "_fused_", "multi_tensor")),
        (r"(^aten::add_?$|^aten::sub_$)", ("aten::add", "aten::sub_")),
        (r"torch[/\\]nn[/\\]modules[/\\]module\.py\(\d+\): zero_grad$", ("): zero_grad",)),
        (r"^autograd::engine|Backward\d*$", ("autograd::engine", "Backward")),
        (r"^vllm(/|::|\.)", ("vllm",)),
        (r"^(cuda|hip)(Launch|Free)", None),  # no word that all need
        (r"aten::add|xy", None),  # too short to tell anything
        (r"(?i)optimizer", None),
        (r"\x61ten::add", None),
    ],
)
def test_words_that_a_name_must_hold(pattern, words):
    assert required_words(pattern) == words
    plain = [at for at, name in enumerate(NAMES) if re.search(pattern, name)]
    assert matching(pattern, NAMES, "\n".join(NAMES)) == plain


def test_no_name_is_lost():
    draw = random.Random(4)
    pieces = ("abc", "bca", "c", r"\.", r"\d", "(ab|ca)", "(abc)?", "[ab.]", "b+", "c{2}", "(a|(bc|c)*)", "^", "$")
    found = 0
    for _ in range(1500):
        parts = ["".join(draw.choices(pieces, k=draw.randint(1, 3))) for _ in range(draw.randint(1, 2))]
        pattern = "|".join(parts)
        names = ["".join(draw.choices(("abc", "bca", "c", ".", "1"), k=draw.randint(0, 4))) for _ in range(8)]
        plain = [at for at, name in enumerate(names) if re.search(pattern, name)]
        assert matching(pattern, names, "\n".join(names)) == plain, pattern
        found += bool(plain) and required_words(pattern) is not None
    assert found > 100
