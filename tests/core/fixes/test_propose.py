"""Each rewrite: the text before, the text after, and nothing else changed."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import pytest

from core.fixes import attempt, propose
from core.fixes.propose import ProposedEdit
from core.suggestions import SourceRef, Suggestion


def suggestion(rule: str, text: str, function: str, exact: bool = True, marker: str = "# here") -> Suggestion:
    """A suggestion at the line that carries the marker."""
    line = next((n for n, row in enumerate(text.split("\n"), 1) if marker in row), 0)
    source = SourceRef("train.py", line, function, exact) if line else None
    return Suggestion(rule, "title", source=source)


def changed(rule: str, before: str, function: str = "<module>", exact: bool = True) -> str:
    before = dedent(before).lstrip("\n")
    edit, why = attempt(before, suggestion(rule, before, function, exact), "train.py")
    assert edit is not None, why
    assert edit.summary.endswith(".")
    assert edit.risk.endswith(".")
    return edit.after


def same_as(after: str, expected: str) -> None:
    assert after == dedent(expected).lstrip("\n")


HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def test_constant_becomes_a_buffer():
    after = changed(
        "constant-copied-each-step",
        """
        import torch
        import torch.nn as nn

        class CrossEntropyLoss(nn.Module):
            def forward(self, input, target):
                pred = log_softmax(input)   # keep   this
                loss = weighted_nll(pred, target, torch.Tensor([0.1]*10).cuda())  # here
                return loss

        def weighted_nll(pred, target, weight):
            return pred

        criterion = CrossEntropyLoss().cuda(device)
        """,
        "forward",
    )
    same_as(
        after,
        """
        import torch
        import torch.nn as nn

        class CrossEntropyLoss(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("weight", torch.Tensor([0.1]*10), persistent=False)

            def forward(self, input, target):
                pred = log_softmax(input)   # keep   this
                loss = weighted_nll(pred, target, self.weight)  # here
                return loss

        def weighted_nll(pred, target, weight):
            return pred

        criterion = CrossEntropyLoss().cuda(device)
        """,
    )


def test_constant_of_a_module_that_is_never_moved_keeps_its_own_move():
    after = changed(
        "constant-copied-each-step",
        """
        import torch
        from torch.nn import Module

        class Loss(Module):
            def __init__(self, scale):
                super().__init__()
                self.scale = scale

            def forward(self, x):
                w = torch.tensor([1.0, 2.0]).to("cuda")  # here
                return (x * w).sum()
        """,
        "Loss.forward",
    )
    assert 'self.register_buffer("w", torch.tensor([1.0, 2.0]).to("cuda"), persistent=False)' in after
    assert "w = self.w  # here" in after


def test_constant_in_a_loop_moves_before_it():
    after = changed(
        "constant-copied-each-step",
        """
        import torch

        def train(loader, device):
            for x in loader:
                mean = torch.tensor([0.5, 0.4]).to(device)  # here
                y = x - mean
        """,
        "train",
    )
    same_as(
        after,
        """
        import torch

        def train(loader, device):
            mean = torch.tensor([0.5, 0.4]).to(device)  # here
            for x in loader:
                y = x - mean
        """,
    )


def test_constant_in_a_function_is_made_on_the_device():
    before = """
        import torch

        def loss(x):
            w = torch.Tensor([1] * 10).to(x.device)  # here
            z = torch.zeros(3).cuda()
            return (w * x).sum() + z.sum()
        """
    assert "w = torch.full((10,), float(1), device=x.device)  # here" in changed(
        "constant-copied-each-step", before, "loss"
    )
    after = changed(
        "constant-copied-each-step", before.replace("  # here", "").replace("cuda()", "cuda()  # here"), "loss"
    )
    assert 'z = torch.zeros(3, device="cuda")' in after


@pytest.mark.parametrize(
    "line",
    [
        "w = torch.tensor([x.shape[0]]).cuda()  # here",  # depends on the input
        "w = torch.tensor([1.0, 2.0]).cuda()  # here",  # a list of values: must be kept somewhere
        "w = torch.zeros(3)  # here",  # stays on the CPU
    ],
)
def test_constant_left_alone(line):
    text = f"import torch\n\ndef loss(x):\n    {line}\n    return w\n"
    assert propose(text, suggestion("constant-copied-each-step", text, "loss"), "a.py") is None


def test_constant_changed_in_place_stays_in_the_loop():
    text = "import torch\nfor x in data:\n    w = torch.zeros(3).cuda()  # here\n    w.add_(x)\n"
    edit = propose(text, suggestion("constant-copied-each-step", text, "<module>"), "a.py")
    assert edit is None


def test_object_moves_to_init():
    after = changed(
        "object-built-in-step",
        """
        import torch
        class Loss(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.ones(10)

            def forward(self, input, target):
                nll = torch.nn.NLLLoss(self.weight)  # here
                loss = nll(input, target)
                return loss
        """,
        "forward",
    )
    same_as(
        after,
        """
        import torch
        class Loss(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.ones(10)
                self.nll = torch.nn.NLLLoss(self.weight)  # here

            def forward(self, input, target):
                loss = self.nll(input, target)
                return loss
        """,
    )


def test_object_in_a_loop_moves_before_it():
    after = changed(
        "object-built-in-step",
        """
        import torch
        for x, y in loader:
            loss = torch.nn.CrossEntropyLoss()(model(x), y)  # here
            loss.backward()
        """,
    )
    assert (
        "criterion = torch.nn.CrossEntropyLoss()\nfor x, y in loader:\n    loss = criterion(model(x), y)  # here"
        in after
    )


def test_object_that_depends_on_the_batch_stays():
    text = (
        "import torch\nclass M(torch.nn.Module):\n    def forward(self, x):\n"
        "        n = torch.nn.LayerNorm(x.shape)  # here\n        return n(x)\n"
    )
    assert propose(text, suggestion("object-built-in-step", text, "forward"), "a.py") is None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("assert target.max() < 10  # here", "torch._assert_async(target.max() < 10)  # here"),
        ('assert t.min() >= 0, "bad"  # here', 'torch._assert_async(t.min() >= 0, "bad")  # here'),
        ("assert not t.isnan().any()  # here", "torch._assert_async(~(t.isnan().any()))  # here"),
        ("assert t.max().item() < 10  # here", "torch._assert_async(t.max() < 10)  # here"),
        ("assert (t.max() < 10)  # here", "torch._assert_async(t.max() < 10)  # here"),
        ("assert 0 <= t.min() < 10  # here", "torch._assert_async((0 <= t.min()) & (t.min() < 10))  # here"),
        (
            "assert len(t) == 3 and t.max() < 10  # here",
            "assert len(t) == 3\n    torch._assert_async(t.max() < 10)  # here",
        ),
    ],
)
def test_assert_goes_to_the_device(line, expected):
    text = f"import torch\ndef f(t, target):\n    {line}\n    return t\n"
    assert changed("control-flow-on-device-tensor", text, "f") == text.replace(line, expected)


def test_assert_without_a_tensor_stays():
    text = "import torch\ndef f(t):\n    assert torch.allclose(t, t.abs())  # here\n"
    assert propose(text, suggestion("control-flow-on-device-tensor", text, "f"), "a.py") is None


def test_inexact_line_needs_a_single_candidate():
    one = "import torch\ndef f(t):  # here\n    assert t.max() < 10\n"
    assert "_assert_async" in changed("control-flow-on-device-tensor", one, "f", exact=False)
    two = one + "    assert t.min() > 0\n"
    edit, why = attempt(two, suggestion("control-flow-on-device-tensor", two, "f", False), "a.py")
    assert edit is None
    assert "several" in why


def test_range_as_an_index():
    after = changed(
        "host-list-index",
        "import torch\ndef f(pred, target):\n    nll = -pred[range(target.shape[0]), target]  # here\n    return nll\n",
        "f",
    )
    assert "nll = -pred[torch.arange(target.shape[0], device=pred.device), target]  # here" in after


def test_range_by_name():
    before = "import torch as th\ndef f(pred, target):\n    r = list(range(0, 8))\n    return pred[r, target]  # here\n"
    assert "r = th.arange(0, 8, device=pred.device)\n" in changed("host-list-index", before, "f")
    loop = before.replace("return", "for i in r: print(i)\n    return")
    assert propose(loop, suggestion("host-list-index", loop, "f"), "a.py") is None


def test_sum_stays_on_the_device():
    after = changed(
        "scalar-read-back",
        """
        def train(loader):
            total = 0.0
            for x in loader:
                loss = step(x)
                total += loss.item() * len(x)  # here
            return total / len(loader)
        """,
        "train",
    )
    same_as(
        after,
        """
        def train(loader):
            total = 0.0
            for x in loader:
                loss = step(x)
                total += loss.detach() * len(x)  # here
            total = float(total)
            return total / len(loader)
        """,
    )


def test_list_of_losses_is_read_once():
    after = changed(
        "scalar-read-back",
        "losses = []\nfor x in loader:\n    loss = step(x)\n    losses.append(float(loss))  # here\n",
    )
    assert after.endswith("    losses.append(loss.detach())  # here\nlosses = [float(value) for value in losses]\n")


def test_shown_value_is_shown_seldom():
    after = changed(
        "scalar-read-back",
        "for i, x in enumerate(loader):\n    loss = step(x)\n    print(i,\n          loss.item())  # here\n",
    )
    assert "    if i % 50 == 0:\n        print(i,\n              loss.item())  # here\n" in after


def test_synchronize_goes():
    text = "import torch\nfor x in data:\n    step(x)\n    torch.cuda.synchronize()  # here\n"
    assert changed("explicit-synchronize", text) == "import torch\nfor x in data:\n    step(x)\n"


def test_anomaly_mode_goes():
    text = "import torch\ntorch.autograd.set_detect_anomaly(True)\n"
    assert changed("debug-mode-left-on", text).endswith("set_detect_anomaly(False)\n")


@pytest.mark.parametrize(("each_bytes", "pinned"), [(40.0, False), (4096.0, True)])
def test_a_few_numbers_set_no_pinned_memory_on_a_loader(each_bytes: float, pinned: bool):
    text = dedent(
        """
        import torch
        from torch.utils.data import DataLoader
        loader = DataLoader(data, batch_size=8)
        for x, y in loader:
            low, high = limits(x)
            x = x.clamp(torch.stack([low, high]).to(device)[0])  # here
        """
    )
    one = replace(suggestion("pageable-batch-copy", text, "<module>"), values={"each_bytes": each_bytes})
    edit = propose(text, one, "train.py")
    assert (edit is not None and "pin_memory" in edit.after) is pinned


def test_batch_copy_without_blocking():
    after = changed(
        "pageable-batch-copy",
        """
        from torch.utils.data import DataLoader
        train_loader = DataLoader(
            data,
            batch_size=8,
        )
        test_loader = DataLoader(data)
        model = Net().to(device)
        for x, y in train_loader:
            x, y = x.to(device), y.cuda()  # here
            x = x.to(torch.float32)
        """,
    )
    same_as(
        after,
        """
        from torch.utils.data import DataLoader
        train_loader = DataLoader(
            data,
            batch_size=8,
            pin_memory=True,
        )
        test_loader = DataLoader(data)
        model = Net().to(device)
        for x, y in train_loader:
            x, y = x.to(device, non_blocking=True), y.cuda(non_blocking=True)  # here
            x = x.to(torch.float32)
        """,
    )


def test_loader_gets_workers():
    after = changed(
        "loader-without-workers",
        "from torch.utils.data import DataLoader\nfor x in DataLoader(data, num_workers=0):  # here\n    pass\n",
    )
    assert "import os\n" in after
    assert "DataLoader(data, num_workers=min(4, os.cpu_count() or 1), persistent_workers=True)" in after


@pytest.mark.parametrize(
    ("given", "told"), [("sizes.workers", "as sizes.workers: set it there"), ("2", "workers already")]
)
def test_why_a_loader_gets_no_workers(given, told):
    text = (
        f"from torch.utils.data import DataLoader\nfor x in DataLoader(data, num_workers={given}):  # here\n    pass\n"
    )
    edit, why = attempt(text, suggestion("loader-without-workers", text, "<module>"), "train.py")
    assert edit is None
    assert told in why


def test_loader_fetches_ahead():
    text = "loader = DataLoader(data, num_workers=2, **more)\n"
    assert propose(text, suggestion("loader-starves-step", text, "", marker="loader"), "a.py") is None
    text = "loader = DataLoader(data, num_workers=2)\n"
    assert "num_workers=2, persistent_workers=True, prefetch_factor=4)" in changed("loader-starves-step", text)
    assert "num_workers=2, persistent_workers=True)" in changed("loader-workers-recreated", text)


@pytest.mark.parametrize("rule", ["loader-without-workers", "loader-starves-step", "loader-workers-recreated"])
@pytest.mark.parametrize(("order", "warned"), [("", False), (", shuffle=True", True), (", sampler=some(data)", True)])
def test_kept_workers_shuffle_otherwise_from_the_second_epoch(rule, order, warned):
    """Workers that are kept draw no seed for each epoch, so that a shuffle finds other random numbers."""
    workers = "" if rule == "loader-without-workers" else ", num_workers=2"
    edit, why = attempt(f"loader = DataLoader(data{order}{workers})\n", Suggestion(rule, "title"), "train.py")
    assert edit is not None, why
    assert ("second epoch" in edit.risk) == warned


def test_gradients_dropped():
    text = "for x in data:\n    opt.zero_grad()\n    net.zero_grad(set_to_none=False)\n"
    after = changed("gradients-zeroed", text)
    assert after.count("zero_grad(set_to_none=True)") == 2


def test_optimizer_in_one_kernel():
    text = "opt = torch.optim.AdamW(net.parameters(), lr=1e-3, foreach=False)\n"
    after = changed("single-tensor-optimizer", text)
    assert "fused=True)" in after
    assert "foreach" not in after
    assert "foreach=True)" in changed("single-tensor-optimizer", "opt = torch.optim.RMSprop(net.parameters())\n")


def test_hand_written_loss_of_the_story():
    after = changed(
        "hand-written-composite-op",
        """
        import torch
        import torch.nn.functional as F

        def weighted_nll(pred, target, weight):  # here
            assert target.max() < 10
            nll = -pred[range(target.shape[0]), target]
            nll = nll * weight[target]
            nll = nll / weight[target].sum()
            sum_nll = nll.sum()
            return sum_nll

        def log_softmax(x):
            return x - x.exp().sum(-1).log().unsqueeze(-1)
        """,
        "weighted_nll",
    )
    same_as(
        after,
        """
        import torch
        import torch.nn.functional as F

        def weighted_nll(pred, target, weight):  # here
            assert target.max() < 10
            return F.nll_loss(pred, target, weight=weight)

        def log_softmax(x):
            return x - x.exp().sum(-1).log().unsqueeze(-1)
        """,
    )
    again = changed(
        "hand-written-composite-op", after.replace("  # here", "").replace("(x):", "(x):  # here"), "log_softmax"
    )
    assert "return F.log_softmax(x, -1)" in again


def test_what_a_known_loss_is_given_is_written_by_its_name_too():
    head = f"{HEAD}def nll(scores, target):  # here\n"
    log_softmax = "    log_probs = {0} - {0}.exp().sum(-1).log().unsqueeze(-1)\n"
    loss = "    return (-log_probs[range(target.shape[0]), target]).mean()\n"
    both = "    return F.nll_loss(F.log_softmax({0}, -1), target)\n"
    after = changed("hand-written-composite-op", head + log_softmax.format("scores") + loss, "nll")
    assert after == head + both.format("scores")
    once = "    out = model(scores)\n" + log_softmax.format("out") + loss
    after = changed("hand-written-composite-op", head + once, "nll")
    assert after == head + both.format("model(scores)")
    twice = log_softmax.format("model(scores)") + loss
    after = changed("hand-written-composite-op", head + twice, "nll")
    assert after.count("model(scores)") == 2  # two calls of what may draw random numbers stay two
    assert "F.nll_loss(" in after


FORMS = [
    ("x - torch.log(torch.sum(torch.exp(x), dim=1, keepdim=True))", "F.log_softmax(x, 1)"),
    ("x - x.logsumexp(-1, keepdim=True)", "F.log_softmax(x, -1)"),
    ("torch.exp(x) / torch.exp(x).sum(dim=-1, keepdim=True)", "F.softmax(x, -1)"),
    ("torch.log(F.softmax(x, dim=1))", "F.log_softmax(x, 1)"),
    ("((x - y) ** 2).mean()", "F.mse_loss(x, y)"),
    ("torch.mean(torch.abs(x - y))", "F.l1_loss(x, y)"),
    ("x * torch.sigmoid(x)", "F.silu(x)"),
    ("0.5 * x * (1 + torch.erf(x / math.sqrt(2)))", "F.gelu(x)"),
    ("0.5 * x * (1.0 + torch.erf(x / 1.4142135623730951))", "F.gelu(x)"),
    ("-x[torch.arange(len(t)), t].mean()", "F.nll_loss(x, t)"),
]


@pytest.mark.parametrize(("expression", "expected"), FORMS)
def test_known_forms(expression, expected):
    text = f"{HEAD}import math\ndef f(x, y, t):  # here\n    return {expression}\n"
    assert f"return {expected}\n" in changed("hand-written-composite-op", text, "f")


@pytest.mark.parametrize(
    "expression",
    [
        "x - x.exp().sum(0).log().unsqueeze(1)",  # two different dimensions
        "((x - y) ** 3).mean()",
        "x * y.sigmoid()",
        "(-x[range(3), t]).mean()",  # the index does not count the rows
        "x + 1",
    ],
)
def test_other_forms_stay(expression):
    text = f"{HEAD}def f(x, y, t):  # here\n    return {expression}\n"
    assert propose(text, suggestion("hand-written-composite-op", text, "f"), "a.py") is None


@pytest.mark.parametrize(("expression", "expected"), FORMS)
def test_known_forms_in_the_middle_of_a_function(expression, expected):
    text = f"{HEAD}import math\ndef f(x, y, t, g):\n    x = g(x)\n    x = {expression}  # here\n    return g(x) + 1\n"
    after = changed("hand-written-composite-op", text, "f")
    assert after == text.replace(expression, expected)


@pytest.mark.parametrize(
    "body",
    [
        "    x = {form}\n    y = {form}\n",  # which of both was meant is not known
        "    x += {form}\n",
        "    x = {form} + 1\n",
        "    x = g({form})\n",
    ],
)
def test_a_line_whose_whole_value_is_not_the_one_known_form_stays(body):
    body = body.format(form=FORMS[0][0])
    text = f"{HEAD}import math\ndef f(x, y, t, g):\n    x = g(x)\n{body}    return g(x) + 1\n"
    assert propose(text, suggestion("hand-written-composite-op", text, "f"), "a.py") is None


def test_cross_entropy():
    text = (
        f"{HEAD}def f(x, t, w):  # here\n    pred = F.log_softmax(x, dim=1)\n    return F.nll_loss(pred, t, weight=w)\n"
    )
    assert changed("unfused-cross-entropy", text, "f").endswith("# here\n    return F.cross_entropy(x, t, weight=w)\n")
    used = text.replace("return", "print(pred)\n    return")
    assert propose(used, suggestion("unfused-cross-entropy", used, "f"), "a.py") is None


LOOP = """
import torch

def train(loader, device):
    model = Net().to(device)
    for x, y in loader:
        x = x.to(device)
        out = model(x)
        loss = criterion(
            out, y)
        opt.zero_grad()
        loss.backward()  # here
"""


def test_compile_model():
    assert "    model = Net().to(device)\n    model = torch.compile(model)\n    for" in changed(
        "launch-bound", LOOP, "train"
    )


def test_autocast():
    after = changed("tensor-cores-unused", LOOP, "train")
    assert (
        "        with torch.autocast(x.device.type, dtype=torch.bfloat16):\n"
        "            out = model(x)\n"
        "            loss = criterion(\n"
        "                out, y)\n"
        "        opt.zero_grad()\n"
    ) in after


def test_channels_last():
    after = changed("layout-conversions", LOOP, "train")
    assert "    model = model.to(memory_format=torch.channels_last)\n    for" in after
    assert "out = model(x.to(memory_format=torch.channels_last))" in after


def test_switches():
    assert 'import torch\n\ntorch.set_float32_matmul_precision("high")\n' in changed("fp32-matmul-without-tf32", LOOP)
    assert "import torch\n\ntorch.backends.cudnn.benchmark = True\n" in changed("algorithm-search-each-step", LOOP)
    assert "net = (Net())" in changed("compile-without-gain", "import torch\nnet = (torch.compile(Net()))\n")


def test_line_ends_and_encoding_survive():
    text = (
        "\ufeff# -*- coding: utf-8 -*-\r\nimport torch\r\ndef f(t):\r\n    é = 'ü'; \r\n"
        "    assert t['ü'].max() < 10  # here\r\n"
    )
    edit = propose(text, suggestion("control-flow-on-device-tensor", text, "f"), "a.py")
    assert edit is not None
    assert edit.after == text.replace("assert t['ü'].max() < 10", "torch._assert_async(t['ü'].max() < 10)")
    assert edit.diff.count("\n-") == 1
    assert edit.lines == (5,)


@pytest.mark.parametrize("text", ["def (", "", "x = 1\rprint(x)", "\x00"])
def test_text_that_is_no_python(text):
    for rule in ("launch-bound", "host-list-index", "loader-without-workers", "fp32-matmul-without-tf32"):
        assert propose(text, Suggestion(rule, "t"), "a.py") is None


def test_unknown_rule():
    edit, why = attempt("x = 1\n", Suggestion("no-such-rule", "t"), "a.py")
    assert edit is None
    assert "no mechanical change" in why


def test_a_file_without_a_line_end_at_its_end_has_a_diff_of_whole_lines():
    text = "def f(opt):\n    opt.zero_grad()  # here"
    edit = propose(text, suggestion("gradients-zeroed", text, "f"), "a.py")
    assert edit is not None
    assert edit.after == text.replace("()  #", "(set_to_none=True)  #")
    assert edit.diff.splitlines()[3:] == [
        " def f(opt):",
        "-    opt.zero_grad()  # here",
        "+    opt.zero_grad(set_to_none=True)  # here",
    ]


@pytest.mark.parametrize("sign", ["\f", "\x0b", "\x85", "\u2028"])
def test_lines_are_those_that_python_counts(sign):
    text = f'import torch\n\f\nS = """{sign}"""\n\fdef f(x):\n    for _ in x:\n'
    text += "        torch.cuda.synchronize()\n        x()\n"
    at = Suggestion("explicit-synchronize", "title", source=SourceRef("a.py", 6, "f", True))
    edit = propose(text, at, "a.py")
    assert edit is not None
    assert edit.lines == (6,)
    assert edit.after == text.replace("        torch.cuda.synchronize()\n", "")


@pytest.mark.parametrize("deep", ["-" * 30000 + "x", "x" + "+1" * 900, "x" + ".a" * 900])
def test_code_nested_too_deeply_is_left_alone(deep: str) -> None:
    text = f"def mse(a, b):\n    x = {deep}\n    d = a - b  # here\n    return (d ** 2 + x).mean()\n"
    edit, why = attempt(text, suggestion("hand-written-composite-op", text, "mse"), "train.py")
    assert edit is None
    assert why


BOTH_BY_HAND = (
    HEAD
    + """
def by_hand(x):
    return x - torch.log(torch.sum(torch.exp(x), dim=1, keepdim=True))  # in it
def main(model, x, y):
    out = by_hand(model(x))  # its call
    loss = -out[torch.arange(len(y)), y].mean()  # beside it
    loss.backward()
"""
)


@pytest.mark.parametrize(
    ("marker", "function", "became"),
    [
        ("# beside it", "main", "    loss = F.nll_loss(out, y)  # beside it"),
        ("# its call", "main", "    return F.log_softmax(x, 1)  # in it"),
        ("# in it", "by_hand", "    return F.log_softmax(x, 1)  # in it"),
    ],
)
def test_a_known_form_at_the_named_line_goes_before_those_in_what_is_called(marker, function, became):
    there = suggestion("hand-written-composite-op", BOTH_BY_HAND, function, marker=marker)
    edit, why = attempt(BOTH_BY_HAND, there, "train.py")
    assert edit is not None, why
    assert [row for row in edit.after.splitlines() if row not in BOTH_BY_HAND] == [became]


@pytest.mark.parametrize(("given", "rounds"), [("(out > 0).sum().item()", False), ("out.sum().item()", True)])
def test_a_count_on_the_device_is_not_said_to_round(given: str, rounds: bool) -> None:
    start = 0.0 if rounds else 0
    text = f"def f(data):\n    n = {start}\n    for out in data:\n        n += {given}  # here\n    return n\n"
    edit, why = attempt(text, suggestion("scalar-read-back", text, "f"), "train.py")
    assert edit is not None, why
    assert ("rounds" in edit.risk) is rounds


READS = """
import torch

def train(loader, model):
    total, right = 0.0, 0.0
    for x, y in loader:
        loss = model(x).sum()
        total += loss.item()  # here
        right += (x > y).float().sum().item()
        if loss.item() > 5:
            break
    return total, right
"""


def several(rule: str, text: str, also: tuple[int, ...]) -> ProposedEdit:
    found = suggestion(rule, text, "train")
    assert found.source is not None
    edit, why = attempt(text, replace(found, source=replace(found.source, also=also)), "train.py")
    assert edit is not None, why
    return edit


def test_reads_at_several_lines_are_all_changed():
    edit = several("scalar-read-back", READS.lstrip(), (8,))
    assert "total += loss.detach()" in edit.after
    assert "right += (x > y).float().sum().detach()" in edit.after
    assert "\n    right = float(right)\n    total = float(total)\n    return total, right" in edit.after
    assert edit.summary == "Keep the values on the device and read them once, after the loop."


def test_a_line_of_several_that_cannot_be_changed_is_told():
    edit = several("scalar-read-back", READS.lstrip(), (8, 9))
    assert "if loss.item() > 5:" in edit.after
    assert edit.summary.endswith(" Line 9 stays as it is.")


def test_the_others_are_changed_where_the_first_of_several_lines_cannot_be():
    text = READS.lstrip().replace("  # here", "").replace("> 5:", "> 5:  # here")
    edit = several("scalar-read-back", text, (7, 8))
    assert edit.summary.endswith(" Line 9 stays as it is.")
    assert "total += loss.detach()" in edit.after
    assert "sum().detach()" in edit.after


def test_lines_that_moved_by_the_change_before_are_found():
    text = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = 1

    def train(self, x):
        mean = torch.tensor([1.0, 2.0]).to(x.device)  # here
        std = torch.tensor([3.0, 4.0]).to(x.device)
        return (x - mean) / std

net = Net().to("cuda")
"""
    edit = several("constant-copied-each-step", text, (12,))
    assert edit.after.count("self.register_buffer(") == 2
    assert ".to(x.device)" not in edit.after
