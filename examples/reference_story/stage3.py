"""Stage 3: the row numbers are made where they are needed, on the device.

What is left: half a dozen small operators where torch has one.
"""

import torch
from common import train
from torch import nn


def log_softmax(scores):
    return scores - scores.exp().sum(-1).log().unsqueeze(-1)


def weighted_nll(log_probs, target, weight):
    rows = torch.arange(target.shape[0], device=target.device)
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
    train(lambda device: WeightedCrossEntropy().to(device), check_labels=True)
