"""Stage 7: the loss is compiled, which is not worth it here: it is too small to gain.

Needs a C++ compiler where it runs on the CPU.
"""

import torch
from common import train
from torch import nn

if __name__ == "__main__":
    train(lambda device: torch.compile(nn.CrossEntropyLoss().to(device)), check_labels=True)
