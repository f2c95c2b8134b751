"""Stage 0: a harmless-looking loss of our own, with everything that later stages put right.

Each call builds the class weights on the CPU and sends them over, asserts on a tensor that lives on the device, and
indexes with a Python range.
"""

import torch
from common import train
from torch import nn


def log_softmax(scores):
    return scores - scores.exp().sum(-1).log().unsqueeze(-1)


def weighted_nll(log_probs, target, weight):
    assert target.max() < 10
    rows = range(target.shape[0])
    nll = -log_probs[rows, target]
    nll = nll * weight[target]
    nll = nll / weight[target].sum()
    return nll.sum()


class WeightedCrossEntropy(nn.Module):
    def forward(self, scores, target):
        log_probs = log_softmax(scores)
        weight = torch.Tensor([0.1] * 10).to(scores.device)
        return weighted_nll(log_probs, target, weight)


if __name__ == "__main__":
    train(lambda device: WeightedCrossEntropy())
