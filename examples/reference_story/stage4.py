"""Stage 4: torch's own negative log-likelihood in place of ours.

What is left, and new: the loss object is built anew in every step.
"""

import torch
from common import train
from torch import nn


def log_softmax(scores):
    return scores - scores.exp().sum(-1).log().unsqueeze(-1)


class WeightedCrossEntropy(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.full((10,), 0.1))

    def forward(self, scores, target):
        nll = nn.NLLLoss(self.weight)
        return nll(log_softmax(scores), target)


if __name__ == "__main__":
    train(lambda device: WeightedCrossEntropy().to(device), check_labels=True)
