"""Training scripts in the styles that people write them in; each has a ``run()`` whose values a fix must not change.

The line that a trace would name carries ``# here``; the suggestion's rule and function are beside it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Script:
    """One script, the suggestion for it, and what the changed text must hold."""

    name: str
    rule: str
    function: str
    text: str
    holds: tuple[str, ...]
    allowed: float = 1e-6  # relative difference


SCRIPTS: list[Script] = []


def script(name: str, rule: str, function: str, text: str, *holds: str, allowed: float = 1e-6) -> None:
    SCRIPTS.append(Script(name, rule, function, text.lstrip("\n"), holds, allowed))


script(
    "a dataclass of settings, the loop in a helper, counts and sums",
    "scalar-read-back",
    "evaluate",
    '''
from __future__ import annotations

from dataclasses import dataclass, field
import torch
from torch import Tensor, nn


@dataclass
class Config:
    """Settings."""
    batch: int = 4
    seeds: list[int] = field(default_factory=lambda: [1, 2])


@torch.no_grad()
def evaluate(model: nn.Module, batches: list[tuple[Tensor, Tensor]]) -> tuple[float, str]:
    loss_sum, correct, seen = 0.0, 0, 0
    for inputs, labels in batches:
        logits = model(inputs)
        loss_sum += nn.functional.cross_entropy(logits, labels).item()
        correct += (logits.argmax(dim=-1) == labels).sum().item()  # here
        seen += labels.numel()
    return loss_sum / len(batches), f"{correct:d}/{seen:d}"


def run():
    cfg = Config()
    torch.manual_seed(cfg.seeds[0])
    model = nn.Linear(5, 3)
    data = [(torch.randn(cfg.batch, 5), torch.randint(0, 3, (cfg.batch,))) for _ in range(6)]
    mean, shown = evaluate(model, data)
    return [mean, *map(float, shown.split("/"))]
''',
    "correct += (logits.argmax(dim=-1) == labels).sum().detach()",
    "    correct = int(correct)\n    return",
)
script(
    "the tutorial's running loss, shown and set back now and then",
    "scalar-read-back",
    "run",
    """
import io
import torch
from contextlib import redirect_stdout

def run():
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    shown = io.StringIO()
    with redirect_stdout(shown):
        for epoch in range(2):
            running_loss = 0.0
            for i in range(10):
                opt.zero_grad()
                loss = net(torch.randn(4, 3)).square().mean()
                loss.backward()
                opt.step()
                running_loss += loss.item()  # here
                if i % 5 == 4:
                    print(f"{running_loss / 5:.4f}")
                    running_loss = 0.0
    return [float(line) for line in shown.getvalue().split()]
""",
    "running_loss += loss.detach()  # here",
    "            running_loss = float(running_loss)\n",
    allowed=1e-3,
)
script(
    "an attribute of a trainer, parts of a loss in parentheses, gradients accumulated",
    "scalar-read-back",
    "Trainer.epoch",
    """
import torch

class Trainer:
    def __init__(self):
        torch.manual_seed(0)
        self.model = torch.nn.Linear(3, 2)
        self.total = 0.0
        self.losses: list[float] = []

    def epoch(self):
        for _ in range(4):
            out = self.model(torch.ones(2, 3))
            a, b = out.mean(), out.square().mean()
            self.total += 0.5 * (a + b).item() + a.cpu().item()  # here
            (a + b).backward()

def run():
    t = Trainer()
    t.epoch()
    t.epoch()
    return [t.total, float(isinstance(t.total, float))]
""",
    "self.total += 0.5 * (a + b).detach() + a.detach()  # here",
    "        self.total = float(self.total)",
)
script(
    "a list of the module, losses divided in place after they were listed",
    "scalar-read-back",
    "train",
    """
import torch
HISTORY = []

def train(steps=5):
    w = torch.ones(3, requires_grad=True)
    for step in range(steps):
        loss = (w * step).sum()
        HISTORY.append(loss.item())  # here
        with torch.no_grad():
            loss /= 4

def run():
    kept = HISTORY
    train()
    train(2)
    return [*kept, len(HISTORY), sum(isinstance(v, float) for v in kept)]
""",
    "HISTORY.append(loss.detach().clone())",
    "    HISTORY[:] = [float(value) for value in HISTORY]",
)
script(
    "tabs, an inner class, a loss of its own",
    "constant-copied-each-step",
    "Loss.forward",
    """
import torch

class Outer:
\tclass Loss(torch.nn.Module):
\t\t# Weighs
\t\tdef forward(self, x: torch.Tensor, *, scale: float = 1.0) -> torch.Tensor:
\t\t\tw = torch.tensor([1.0, 2.0, 3.0]).to(torch.device("cpu"))  # here
\t\t\treturn (x * w).sum() * scale

def run():
\tloss = Outer.Loss()
\treturn [loss(torch.ones(3)).item(), loss(torch.ones(2, 3), scale=2.0).item()]
""",
    '\t\tdef __init__(self):\n\t\t\tsuper().__init__()\n\t\t\tself.register_buffer("w", ',
    "\n\n\t\t# Weighs\n\t\tdef forward",
)
script(
    "two spaces, an __init__ that ends in a loop, a constant of a base class of the file",
    "constant-copied-each-step",
    "forward",
    """
import torch
import torch.nn as nn

SCALES = [0.5, 0.25]

class Base(nn.Module):
  def __init__(self, width):
    super().__init__()
    self.layers = nn.ModuleList()
    for _ in range(2):
      self.layers.append(nn.Linear(width, width))

class Head(Base):
  def __init__(self, width: int = 2):
    super().__init__(width)
    for layer in self.layers:
      nn.init.ones_(layer.weight)

  def forward(self, x):
    for layer in self.layers:
      x = layer(x) * torch.tensor(
        SCALES,  # fixed
        dtype=torch.float32,
      ).to(x.device)  # here
    return x

def run():
  torch.manual_seed(0)
  head = Head().to("cpu")
  return head(torch.ones(1, 2)).flatten().tolist() + [float(len(head.state_dict()))]
""",
    'self.register_buffer("constant", torch.tensor(',
    "x = layer(x) * self.constant  # here",
)
script(
    "line ends of Windows, a loop at the module's level within a with",
    "constant-copied-each-step",
    "<module>",
    """
import torch
total = []
with torch.no_grad():
    for step in range(3):
        mean = torch.tensor([0.5, 0.25]).to(device="cpu")  # here
        total.append(((torch.ones(2) - mean) * step).sum().item())

def run():
    return total
""".replace("\n", "\r\n"),
    '    mean = torch.tensor([0.5, 0.25]).to(device="cpu")  # here\r\n    for step in range(3):\r\n        total',
)
script(
    "a function without a class or loop: filled on the device",
    "constant-copied-each-step",
    "penalty",
    """
import torch

ROWS: int = 3

def penalty(x, device):
    a = torch.LongTensor([1] * ROWS).to(device, non_blocking=True)  # here
    return (x.long() * a).float().sum(), a.dtype

def run():
    value, kind = penalty(torch.ones(3) * 2, torch.device("cpu"))
    return [value.item(), float(kind == torch.int64)]
""",
    "a = torch.full((ROWS,), int(1), device=device)  # here",
)
script(
    "a scalar in a function",
    "constant-copied-each-step",
    "clip",
    """
import torch as th

def clip(x):
    return th.minimum(x, th.tensor(0.5).to(x.device))  # here

def run():
    return clip(th.linspace(0, 1, 5)).tolist()
""",
    "th.full((), 0.5, device=x.device)",
)
script(
    "a weighted loss built in forward, over several lines, with keywords",
    "object-built-in-step",
    "training_step",
    '''
import torch
from torch import nn

class Lit(nn.Module):
    """Like a module of Lightning."""

    def __init__(self, n_classes: int = 3, *, smoothing: float = 0.1):
        super().__init__()
        self.net = nn.Linear(4, n_classes)
        self.smoothing = smoothing
        self.register_buffer("weight", torch.arange(1.0, n_classes + 1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        criterion = nn.CrossEntropyLoss(  # here
            weight=self.weight,
            label_smoothing=self.smoothing,
        )
        return criterion(self.net(x), y)

def run():
    torch.manual_seed(0)
    m = Lit().to("cpu")
    x, y = torch.randn(5, 4), torch.randint(0, 3, (5,))
    return [m.training_step((x, y), i).item() for i in range(2)]
''',
    "self.criterion = nn.CrossEntropyLoss(  # here\n",
    "return self.criterion(self.net(x), y)",
)
script(
    "a loss built in a loop of a helper function, beside a decorator",
    "object-built-in-step",
    "train",
    """
import functools
import torch
from torch.nn import SmoothL1Loss

def logged(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        return f(*args, **kwargs)
    return inner

@logged
def train(net, batches, beta=0.5):
    out = []
    for x, y in batches:
        loss = SmoothL1Loss(reduction="sum")(net(x), y)  # here
        out += [loss.item()]
    return out

def run():
    torch.manual_seed(0)
    return train(torch.nn.Linear(2, 2), [(torch.randn(3, 2), torch.randn(3, 2)) for _ in range(3)])
""",
    '    criterion = SmoothL1Loss(reduction="sum")\n    for x, y in batches:',
)
script(
    "an assertion over two lines on two tensors, one read back",
    "control-flow-on-device-tensor",
    "check",
    """
import torch

def check(ids, vocab, mask):
    assert (
        ids.min().item() >= 0
        and ids.max().item() < vocab  # the embedding's rows
        and not mask.sum()
    ), f"bad ids {ids}"  # here
    return ids.float().mean()

def run():
    out = [check(torch.arange(4), 10, torch.zeros(3)).item()]
    for ids, mask in ((torch.arange(20), torch.zeros(3)), (torch.arange(4), torch.tensor([5, 1]))):
        try:
            check(ids, 10, mask)
            out.append(0.0)
        except (AssertionError, RuntimeError):
            out.append(1.0)
    return out
""",
    "torch._assert_async(ids.min() >= 0)",
    "torch._assert_async(torch.logical_not(mask.sum()))",
)
script(
    "an assertion by math on what is read back",
    "control-flow-on-device-tensor",
    "guard",
    """
import math
from torch import nn
import torch.nn.functional as F

def guard(loss):
    assert not math.isnan(loss.item()), "loss is nan"  # here
    return loss * 2

def run():
    import torch
    return [guard(torch.tensor(1.5)).item()]
""",
    'torch._assert_async(~(torch.isnan(loss)), "loss is nan")  # here',
    "import torch.nn.functional as F\nimport torch\n",
)
script(
    "an index by range in a method, with annotations",
    "host-list-index",
    "Sampler.pick",
    """
import torch
from torch import Tensor

class Sampler:
    def pick(self, logits: Tensor, target: Tensor) -> Tensor:
        rows = list(range(logits.size(0)))
        picked: Tensor = logits.softmax(-1)[rows, target]  # here
        return picked.log().mean()

def run():
    torch.manual_seed(0)
    return [Sampler().pick(torch.randn(4, 3), torch.tensor([0, 2, 1, 1])).item()]
""",
    "rows = torch.arange(logits.size(0), device=target.device)",
)
script(
    "mean squared error in steps, torch known by its parts alone",
    "hand-written-composite-op",
    "mse",
    '''
from torch import nn, randn, manual_seed

def mse(prediction, target):
    """Mean of squares."""
    # the difference first
    diff = prediction - target  # here
    squared = diff ** 2
    return squared.mean()

def run():
    manual_seed(0)
    return [mse(randn(4, 2), randn(4, 2)).item()]
''',
    "return torch.nn.functional.mse_loss(prediction, target)",
    "from torch import nn, randn, manual_seed\nimport torch\n",
)
script(
    "softmax in a method by keyword, CRLF",
    "hand-written-composite-op",
    "Attention.weights",
    """
import torch
from torch.nn import functional

class Attention:
    def weights(self, scores):
        e = torch.exp(scores)  # here
        total = torch.sum(e, dim=-1, keepdim=True)
        return e / total

def run():
    torch.manual_seed(0)
    return Attention().weights(torch.randn(2, 3)).flatten().tolist()
""".replace("\n", "\r\n"),
    "return functional.softmax(scores, -1)\r\n",
)
script(
    "an NLLLoss that was imported by its own name",
    "unfused-cross-entropy",
    "step",
    """
import torch
from torch.nn import NLLLoss
import torch.nn.functional as F

criterion = NLLLoss(ignore_index=-1)

def step(net, x, y):
    log_probs = F.log_softmax(net(x), dim=-1)
    loss = criterion(log_probs, y)  # here
    return loss

def run():
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 4)
    return [step(net, torch.randn(5, 3), torch.tensor([0, 1, 2, 3, -1])).item()]
""",
    "criterion = torch.nn.CrossEntropyLoss(ignore_index=-1)",
    "logits = net(x)\n    loss = criterion(logits, y)  # here",
)
script(
    "an optimizer over several lines with groups and a comment at the end",
    "single-tensor-optimizer",
    "build",
    """
import torch
from torch import optim

def build(net):
    decay = [p for p in net.parameters() if p.dim() > 1]
    rest = [p for p in net.parameters() if p.dim() <= 1]
    return optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
        lr=1e-2,
        betas=(0.9, 0.95)  # as GPT does
    )

def run():
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 2)
    opt = build(net)  # here
    for _ in range(3):
        opt.zero_grad()
        net(torch.ones(2, 3)).square().sum().backward()
        opt.step()
    return net.weight.flatten().tolist()
""",
    "        betas=(0.9, 0.95),  # as GPT does\n        fused=True,\n    )",
    allowed=1e-4,
)
script(
    "a script as those of Hugging Face: dicts to the device",
    "pageable-batch-copy",
    "main",
    """
import torch
from torch.utils.data import DataLoader, Dataset


class Texts(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return {"input_ids": torch.arange(4) + i, "labels": torch.tensor(i % 2)}


def main(args=None):
    device = torch.device("cpu")
    dataset = Texts()
    train_dataloader = DataLoader(
        dataset,
        shuffle=False,
        batch_size=4,  # per device
    )
    eval_dataloader = DataLoader(dataset, batch_size=4)
    out = []
    for step, batch in enumerate(train_dataloader):
        batch = {k: v.to(device) for k, v in batch.items()}  # here
        logits = batch["input_ids"].float().mean(1)
        preds = logits.to("cpu")
        out += preds.tolist()
    return out


def run():
    return main()
""",
    "v.to(device, non_blocking=True)",
    "        batch_size=4,  # per device\n        pin_memory=True,\n    )",
    'preds = logits.to("cpu")\n',
    "eval_dataloader = DataLoader(dataset, batch_size=4)\n",
)
script(
    "two loaders without workers, one call over lines with comments",
    "loader-without-workers",
    "run",
    """
import torch
from torch.utils import data


def run():
    if __name__ != "case":
        return []
    train = data.DataLoader(
        data.TensorDataset(torch.arange(6.0)),
        batch_size=2,
        drop_last=True  # no rest
    )
    val = data.DataLoader(data.TensorDataset(torch.arange(4.0)), 2)
    out = []
    for (x,), (y,) in zip(train, val):  # here
        out += [x.sum().item(), y.sum().item()]
    return out
""",
    "        drop_last=True,  # no rest\n        num_workers=min(4, os.cpu_count() or 1),\n",
    "        persistent_workers=True,\n    )\n",
    "import os\n\n\ndef run():",
)
script(
    "zero_grad by position",
    "gradients-zeroed",
    "run",
    """
import torch

def run():
    torch.manual_seed(0)
    net = torch.nn.Linear(2, 1); opt = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(3):
        opt.zero_grad(False)  # here
        net(torch.ones(1, 2)).sum().backward()
        opt.step()
    return net.weight.flatten().tolist()
""",
    "opt.zero_grad(True)  # here",
)
script(
    "TF32 where torch is imported below other statements",
    "fp32-matmul-without-tf32",
    "<module>",
    """
#!/usr/bin/env python
import os
os.environ.setdefault("OMP_NUM_THREADS", "1")
import torch  # noqa: E402

from torch import nn

def run():
    torch.manual_seed(0)
    return nn.Linear(2, 2)(torch.ones(1, 2)).flatten().tolist()  # here
""",
    'import torch  # noqa: E402\n\ntorch.set_float32_matmul_precision("high")\n',
)
script(
    "autocast in a file with tabs; the batch may be anything",
    "tensor-cores-unused",
    "fit",
    """
import warnings
import torch

def fit(model, loader, opt, loss_fn):
\tlosses = []
\tfor x, y in loader:
\t\topt.zero_grad()
\t\tout = model(x)
\t\tloss = loss_fn(
\t\t\tout,
\t\t\ty,
\t\t)
\t\tloss.backward()  # here
\t\topt.step()
\t\tlosses.append(loss.item())
\treturn losses

def run():
\twarnings.simplefilter("ignore")
\ttorch.manual_seed(0)
\tmodel = torch.nn.Linear(3, 1)
\tdata = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(3)]
\treturn fit(model, data, torch.optim.SGD(model.parameters(), 0.1), torch.nn.MSELoss())
""",
    '\t\twith torch.autocast("cuda", dtype=torch.bfloat16):\n\t\t\tout = model(x)\n\t\t\tloss = loss_fn(\n\t\t\t\tout,',
    allowed=5e-2,
)
script(
    "channels last where the model is built in the same function, with keywords",
    "layout-conversions",
    "run",
    """
import torch
from torch import nn

def run():
    torch.manual_seed(0)
    model: nn.Module = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(2 * 16, 2))
    model.train()
    losses = []
    for images in torch.randn(3, 2, 3, 6, 6):
        loss = nn.functional.cross_entropy(input=model(images), target=torch.tensor([0, 1]))
        loss.backward()  # here
        losses.append(loss.item())
    return losses
""",
    "model = model.to(memory_format=torch.channels_last)",
    "model(images.to(memory_format=torch.channels_last))",
    allowed=1e-4,
)
script(
    "a synchronisation that alone is a branch",
    "explicit-synchronize",
    "run",
    """
import torch

def run(sync=True):
    total = 0
    for i in range(3):
        total += i
        if sync:
            torch.cpu.synchronize()  # here
    return [float(total)]
""",
    "        total += i\n    return",
)
script(
    "every step is printed: seldom, in a file with three spaces",
    "scalar-read-back",
    "run",
    '''
import torch

def run():
   seen = []
   for step, x in enumerate(torch.ones(4, 2)):
      loss = x.sum()
      print(f"""step {step}
   loss {loss.item()}""")  # here
      seen.append(step)
   return [float(s) for s in seen]
''',
    '      if step % 50 == 0:\n         print(f"""step {step}\n   loss {loss.item()}""")  # here\n',
)
script(
    "a batch of bytes by keyword, letters beyond ASCII before it",
    "float-batch-copied",
    "prepare",
    """
import torch

def prepare(bilder, größe=2):
    ä, x = "ü€", (bilder.to(dtype=torch.float32) / 255.0 - 0.5) * 2  # here
    return x

def run():
    return prepare(torch.arange(0, 250, 50, dtype=torch.uint8)).tolist()
""",
    'ä, x = "ü€", torch.add(-1.0, bilder, alpha=2 / 255)  # here',
)
script(
    "GPT's activation and a softmax that takes the largest away first",
    "hand-written-composite-op",
    "score",
    """
import math
import torch

def act(x):
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))

def shares(x):
    largest = torch.max(x, dim=-1, keepdim=True).values
    e = torch.exp(x - largest)
    return e / e.sum(dim=-1, keepdim=True)

def score(x):  # here
    return (shares(act(x)) * x).sum()

def run():
    torch.manual_seed(0)
    x = torch.randn(5, 7, requires_grad=True)
    out = score(x)
    out.backward()
    return [float(out), *x.grad.flatten().tolist()]
""",
    'torch.nn.functional.gelu(x, approximate="tanh")',
    "torch.nn.functional.softmax(x, -1)",
    allowed=1e-4,
)
