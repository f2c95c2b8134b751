# ruff: noqa: SIM905  (word lists read better as text)
"""The known chains of small operators that a built-in does at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Chain:
    """One composite operation: the ops it is written with, in order (views between them are allowed)."""

    what: str
    ops: tuple[frozenset[str], ...]
    keeps: int  # how many of its ops the built-in still needs
    summary: str
    before: str
    after: str
    url: str
    hint: str = ""
    risk: str = "Compare the results once; they may differ in the last digits."
    follows: tuple[str, ...] = ()  # one of these ops must run shortly before: it shows what the numbers are
    not_before: tuple[str, ...] = ()  # an op that needs what lies in between may not follow
    drops: int = 0  # how many of its first ops the built-in does not need either
    in_sight: bool = False  # torch writes it so itself: only where stacks show whose code it is


def _chain(*names: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(f"aten::{n}" for n in name.split("|")) for name in names)


_UNBIASED = "std() and var() divide by n - 1 and layer_norm by n: results differ a little, by less the wider the layer."
_DOCS = "https://pytorch.org/docs/stable/generated/torch.nn.functional."
_LOGS = tuple(f"aten::{n}" for n in "log_softmax _log_softmax log logsumexp log_sigmoid logsigmoid".split())


def _tanh_gelu(*names: str) -> Chain:
    """GELU in the form that needs no ``erf``; the cube is a power or two products."""
    return Chain(
        "GELU",
        _chain(*names),
        1,
        "Use the built-in gelu.",
        "0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))",
        'F.gelu(x, approximate="tanh")',
        _DOCS + "gelu.html",
        "call:tanh",
    )


def _likelihood(*names: str) -> Chain:
    """Mean of the log-probabilities of the targets, with the sign changed at some point."""
    return Chain(
        "a negative log-likelihood loss",
        _chain(*names),
        1,
        "Use the built-in nll_loss.",
        "loss = -logp[rows, target].mean()",
        "loss = F.nll_loss(logp, target)",
        _DOCS + "nll_loss.html",
        "gather",
        follows=_LOGS,
    )


def _one_hot(follows: tuple[str, ...], *names: str) -> Chain:
    return Chain(
        "cross-entropy with one-hot targets",
        _chain(*names),
        len(names) - 3,
        "Use the built-in cross_entropy with the classes' numbers.",
        "onehot = F.one_hot(target, classes).float()\nloss = -(onehot * F.log_softmax(x, 1)).sum(1).mean()",
        "loss = F.cross_entropy(x, target)",
        _DOCS + "cross_entropy.html",
        "call:one_hot",
        follows=follows,
        drops=1,
    )


CHAINS = (  # longer ones first: an operator belongs to the first chain that holds it
    Chain(
        "log-softmax",
        _chain("exp", "sum", "log", "sub"),
        1,
        "Use the built-in log_softmax.",
        "x - x.exp().sum(-1).log().unsqueeze(-1)",
        "F.log_softmax(x, dim=-1)",
        _DOCS + "log_softmax.html",
        "call:exp,log,sum",
    ),
    Chain(
        "a negative log-likelihood loss",
        _chain("index|gather", "neg", "index|index_select", "mul", "index|index_select", "sum", "div", "sum"),
        2,
        "Use the built-in nll_loss.",
        "nll = -pred[rows, target]\nnll = nll * weight[target]\nnll = nll / weight[target].sum()\nloss = nll.sum()",
        "loss = F.nll_loss(pred, target, weight=weight)",
        _DOCS + "nll_loss.html",
        "gather",
    ),
    Chain(
        "a negative log-likelihood loss",
        _chain("index|gather", "index|index_select", "mul", "sum", "neg", "index|index_select", "sum", "div"),
        2,
        "Use the built-in nll_loss.",
        "picked = pred[rows, target]\nloss = -(weight[target] * picked).sum() / weight[target].sum()",
        "loss = F.nll_loss(pred, target, weight=weight)",
        _DOCS + "nll_loss.html",
        "gather",
    ),
    Chain(
        "a label-smoothed cross-entropy",
        _chain("index|gather", "neg", "mean", "neg", "mul", "mul", "add", "mean"),
        4,
        "Use the built-in cross_entropy with label_smoothing.",
        "nll = -logp.gather(1, target[:, None]).squeeze(1)\nsmooth = -logp.mean(-1)\n"
        "loss = ((1 - eps) * nll + eps * smooth).mean()",
        "loss = F.cross_entropy(x, target, label_smoothing=eps)",
        _DOCS + "cross_entropy.html",
        "gather",
        follows=_LOGS,
    ),
    *(_one_hot((), "one_hot", "log_softmax", "mul", "sum", *ends) for ends in (("mean", "neg"), ("neg", "mean|div"))),
    *(_one_hot(_LOGS, "one_hot", "mul", "sum", *ends) for ends in (("mean", "neg"), ("neg", "mean|div"))),
    _likelihood("index|gather", "neg", "mean"),
    _likelihood("index|gather", "mean", "neg"),
    _likelihood("index|gather", "neg", "sum", "div"),
    _likelihood("index|gather", "sum", "neg", "div"),
    _likelihood("index|gather", "sum", "div", "neg"),
    Chain(
        "log-softmax",
        _chain("softmax", "add", "log"),
        1,
        "Use the built-in log_softmax.",
        "logp = torch.log(F.softmax(x, dim=-1) + eps)",
        "logp = F.log_softmax(x, dim=-1)",
        _DOCS + "log_softmax.html",
        "call:log",
        "The built-in needs no small number against log(0): results differ where a probability is nearly nothing.",
        not_before=("aten::mul",),
    ),
    Chain(
        "log-softmax",
        _chain("softmax", "log"),
        1,
        "Use the built-in log_softmax.",
        "logp = torch.log(F.softmax(x, dim=-1))",
        "logp = F.log_softmax(x, dim=-1)",
        _DOCS + "log_softmax.html",
        "call:log",
        not_before=("aten::mul",),
    ),
    Chain(
        "log-softmax",
        _chain("logsumexp", "sub"),
        1,
        "Use the built-in log_softmax.",
        "logp = x - torch.logsumexp(x, dim=-1, keepdim=True)",
        "logp = F.log_softmax(x, dim=-1)",
        _DOCS + "log_softmax.html",
        "call:logsumexp",
        in_sight=True,
    ),
    Chain(
        "log-softmax",
        _chain("exp", "sum", "div", "log"),
        1,
        "Use the built-in log_softmax.",
        "e = x.exp()\nlogp = (e / e.sum(-1, keepdim=True)).log()",
        "logp = F.log_softmax(x, dim=-1)",
        _DOCS + "log_softmax.html",
        "call:exp,log,sum",
        "Where the exponentials overflow, the built-in still gives numbers: results can differ there.",
    ),
    Chain(
        "softmax",
        _chain("exp", "sum", "div"),
        1,
        "Use the built-in softmax.",
        "e = x.exp()\np = e / e.sum(-1, keepdim=True)",
        "p = F.softmax(x, dim=-1)",
        _DOCS + "softmax.html",
        "call:exp,sum",
    ),
    Chain(
        "GELU",
        _chain("mul", "div|mul", "erf", "add", "mul"),
        1,
        "Use the built-in gelu.",
        "0.5 * x * (1 + torch.erf(x / math.sqrt(2)))",
        "F.gelu(x)",
        _DOCS + "gelu.html",
        "call:erf",
    ),
    Chain(
        "GELU",
        _chain("div|mul", "erf", "add", "mul"),
        1,
        "Use the built-in gelu.",
        "0.5 * x * (1 + torch.erf(x / math.sqrt(2)))",
        "F.gelu(x)",
        _DOCS + "gelu.html",
        "call:erf",
    ),
    _tanh_gelu("pow|mul", "mul", "add", "mul", "mul", "tanh", "add", "mul"),  # 0.5 * x is made beside the inner part
    _tanh_gelu("pow|mul", "mul", "add", "mul", "tanh", "add", "mul"),
    Chain(
        "layer norm",
        _chain("mean", "sub", "pow", "mean", "add", "sqrt|rsqrt", "div|mul"),
        1,
        "Use the built-in layer_norm.",
        "(x - x.mean(-1, keepdim=True)) / torch.sqrt(((x - mean) ** 2).mean(-1, keepdim=True) + eps)",
        "F.layer_norm(x, x.shape[-1:], weight, bias, eps)",
        _DOCS + "layer_norm.html",
        "call:mean,sqrt",
    ),
    Chain(
        "layer norm",
        _chain("mean", "var", "sub", "add", "sqrt|rsqrt", "div|mul"),
        1,
        "Use the built-in layer_norm.",
        "(x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + eps)",
        "F.layer_norm(x, x.shape[-1:], weight, bias, eps)",
        _DOCS + "layer_norm.html",
        "call:mean,var",
        _UNBIASED,
    ),
    Chain(
        "layer norm",
        _chain("mean", "std", "sub", "mul", "add", "div", "add"),
        1,
        "Use the built-in layer_norm.",
        "a * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps) + b",
        "F.layer_norm(x, x.shape[-1:], weight, bias, eps)",
        _DOCS + "layer_norm.html",
        "call:mean,std",
        _UNBIASED,
    ),
    Chain(
        "layer norm",
        _chain("mean", "std", "sub", "add", "div"),
        1,
        "Use the built-in layer_norm.",
        "(x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps)",
        "F.layer_norm(x, x.shape[-1:], eps=eps)",
        _DOCS + "layer_norm.html",
        "call:mean,std",
        _UNBIASED,
    ),
    *(
        Chain(
            "layer norm",
            _chain(*names.split()),
            1,
            "Use the built-in layer_norm.",
            "var, mean = torch.var_mean(x, -1, keepdim=True, unbiased=False)\n(x - mean) * torch.rsqrt(var + eps)",
            "F.layer_norm(x, x.shape[-1:], weight, bias, eps)",
            _DOCS + "layer_norm.html",
            "call:mean,var,var_mean",
            _UNBIASED,
        )
        for names in (
            "var_mean sub add sqrt|rsqrt div|mul",
            "var_mean add rsqrt sub mul",
            "mean var add sqrt|rsqrt sub div|mul",
            "mean sub var add sqrt|rsqrt div|mul",
            "mean sub square|mul mean add sqrt|rsqrt div|mul",
        )
    ),
    Chain(
        "RMS norm",
        _chain("pow|square", "mean", "add", "rsqrt", "mul"),
        1,
        "Use the built-in rms_norm.",
        "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight",
        "F.rms_norm(x, x.shape[-1:], weight, eps)",
        _DOCS + "rms_norm.html",
        "call:rsqrt",
    ),
)
