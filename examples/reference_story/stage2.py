"""Stage 2: the labels are checked in the data set, on the CPU, before they are sent to the device.

What is left: a Python range as index, which is copied to the device in every step.
"""

import torch
from common import train
from torch import nn


def log_softmax(scores):
    return scores - scores.exp().sum(-1).log().unsqueeze(-1)


def weighted_nll(log_probs, target, weight):
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
    train(lambda device: WeightedCrossEntropy().to(device), check_labels=True)
