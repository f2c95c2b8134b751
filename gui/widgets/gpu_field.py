"""Which GPUs a script shall see: all, none, or one of those that its interpreter finds."""

from __future__ import annotations

import os

from gui.widgets.calm import CalmCombo
from profiling.preflight import Device
from profiling.spec import NO_GPU


class GpuField(CalmCombo):
    """Holds what ``RunSpec.gpu`` takes."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(self.tr("GPUs that the script sees"))
        self.offer(())

    def value(self) -> str:
        """The choice, "" for all that are visible."""
        return str(self.currentData() or "")

    def offer(self, devices: tuple[Device, ...]) -> None:
        """All, none, or one of those that the interpreter sees; what was chosen stays chosen."""
        chosen = self.value()
        inherited = [part.strip() for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part.strip()]
        self.blockSignals(True)
        self.clear()
        self.addItem(self.tr("All that are visible"), "")
        for device in devices:
            number = inherited[device.index] if device.index < len(inherited) else str(device.index)
            self.addItem(self.tr("{number}: {name}").format(number=number, name=device.name), number)
        self.addItem(self.tr("None: run on the CPU"), NO_GPU)
        self.choose(chosen)
        self.blockSignals(False)

    def choose(self, chosen: str) -> None:
        """Choose one, also one that is not offered."""
        if self.findData(chosen) < 0:
            self.addItem(chosen, chosen)
        self.setCurrentIndex(self.findData(chosen))
