"""Stage 1: the class weights are made once and move to the device with the module.

What is left: the assertion on a device tensor now waits for everything that was queued before it.
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
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.full((10,), 0.1))

    def forward(self, scores, target):
        return weighted_nll(log_softmax(scores), target, self.weight)


if __name__ == "__main__":
    train(lambda device: WeightedCrossEntropy().to(device))
