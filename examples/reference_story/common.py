"""What every stage of the story shares: the data, the model, the sizes and the loop.

The stages differ only in how the loss is computed, so that the difference between two traces is the difference
between two losses.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES = 10


@dataclass(frozen=True)
class Sizes:
    """How big a run is: large enough to keep a GPU busy, or small enough for two CPU cores."""

    batch: int
    side_px: int
    images: int
    workers: int
    steps: int


ON_CUDA = Sizes(batch=1024, side_px=256, images=1024 * 512, workers=8, steps=60)
ON_CPU = Sizes(batch=32, side_px=64, images=32 * 64, workers=0, steps=30)


class RandomImages(Dataset):
    """Noise in the shape of small photographs, enlarged to ``side_px``, with a random class each.

    With ``check_labels`` a wrong class is caught here, on the CPU, before anything is sent to the device.
    """

    SOURCE_SIDE_PX = 32
    KEPT = 2048  # images held in memory; more would only cost start-up time

    def __init__(self, sizes: Sizes, check_labels: bool) -> None:
        side = self.SOURCE_SIDE_PX
        generator = torch.Generator().manual_seed(7)
        self.pictures = torch.randint(0, 256, (self.KEPT, 3, side, side), dtype=torch.uint8, generator=generator)
        self.classes = torch.randint(0, CLASSES, (self.KEPT,), generator=generator).tolist()
        self.scale = sizes.side_px // side
        self.length = sizes.images
        self.check_labels = check_labels

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        picture = self.pictures[index % self.KEPT]
        label = self.classes[index % self.KEPT]
        if self.check_labels:
            assert 0 <= label < CLASSES, f"image {index} has class {label}"
        return picture.repeat_interleave(self.scale, 1).repeat_interleave(self.scale, 2), label


class SmallNet(nn.Module):
    """Eight convolutions, each followed by ReLU and pooling: what it learns does not matter here."""

    WIDTHS = (3, 8, 12, 16, 20, 24, 28, 32, CLASSES)

    def __init__(self, side_px: int) -> None:
        super().__init__()
        self.convs = nn.ModuleList(
            nn.Conv2d(self.WIDTHS[i], self.WIDTHS[i + 1], 3, padding=1) for i in range(len(self.WIDTHS) - 1)
        )
        self.pools = side_px.bit_length() - 1  # halve until one pixel is left
        self.pool = nn.MaxPool2d(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for index, conv in enumerate(self.convs):
            x = torch.relu(conv(x))
            if index < self.pools:
                x = self.pool(x)
        return torch.flatten(x, 1)


def train(make_criterion, check_labels: bool = False) -> None:
    """Train for a few dozen steps on CUDA where there is one, else on the CPU.

    ``make_criterion(device)`` builds the loss. Nothing in this loop knows of a profiler.
    """
    parser = argparse.ArgumentParser(description="One stage of the reference story.")
    parser.add_argument("--steps", type=int, default=0, help="how many steps to train (default: by device)")
    parser.add_argument("--batch", type=int, default=0, help="images in a batch (default: by device)")
    parser.add_argument("--side", type=int, default=0, help="pixels along a side, a power of two from 32 on")
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()

    device = torch.device(options.device)
    sizes = ON_CUDA if device.type == "cuda" else ON_CPU
    sizes = replace(sizes, batch=options.batch or sizes.batch, side_px=options.side or sizes.side_px)
    steps = options.steps or sizes.steps
    torch.manual_seed(0)
    loader = DataLoader(
        RandomImages(sizes, check_labels),
        batch_size=sizes.batch,
        shuffle=True,
        num_workers=sizes.workers,
        pin_memory=device.type == "cuda",
    )
    model = SmallNet(sizes.side_px).to(device)
    criterion = make_criterion(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    model.train()
    for step, (images, labels) in enumerate(loader):
        if step >= steps:
            break
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        images = (images.to(torch.float32) / 255.0 - 0.5) / 0.5
        loss = criterion(model(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    print(f"trained {steps} steps on {device}")
