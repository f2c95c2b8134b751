"""Stage 5: the loss object is built once.

What is left: log-softmax and loss are still separate operators.
"""

import torch
from common import train
from torch import nn


def log_softmax(scores):
    return scores - scores.exp().sum(-1).log().unsqueeze(-1)


class WeightedCrossEntropy(nn.Module):
    def __init__(self):
        super().__init__()
        self.nll = nn.NLLLoss(torch.full((10,), 0.1))

    def forward(self, scores, target):
        return self.nll(log_softmax(scores), target)


if __name__ == "__main__":
    train(lambda device: WeightedCrossEntropy().to(device), check_labels=True)
