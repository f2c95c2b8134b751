"""What a trace's devices are called: as the trace calls them, GPU where it calls them nothing else."""

from __future__ import annotations

import re
from weakref import WeakKeyDictionary

from core.trace import Trace

# Names of the processes that a profiler writes for devices ("MTIA 9"), torch's names of accelerators, and the names
# that their makers' tools give ("Ascend Hardware", of torch_npu).
_WORDS = re.compile(r"^\W*(GPU|MTIA|NPU|XPU|HPU|MPS|MLU|TPU|GCU|DCU|SDAA|PPU)(?![A-Za-z])", re.IGNORECASE)
_MAKERS = ((re.compile(r"ascend", re.IGNORECASE), "NPU"), (re.compile(r"gaudi|habana", re.IGNORECASE), "HPU"))
USUAL = "GPU"


def word_in(name: str) -> str:
    """Word for a device in the name of its process, or of its make; empty where it tells none."""
    found = _WORDS.match(name)
    return found[1].upper() if found else next((word for maker, word in _MAKERS if maker.search(name)), "")


_known: WeakKeyDictionary[Trace, dict[int, str]] = WeakKeyDictionary()


def _words(trace: Trace) -> dict[int, str]:
    if trace not in _known:
        _known[trace] = _find(trace)
    return _known[trace]


def _find(trace: Trace) -> dict[int, str]:
    makes = {device.index: word_in(device.name) for device in trace.meta.devices}
    found = {device: word for device, word in makes.items() if word}
    processes = trace.processes
    for device, name_id in zip(processes.device.tolist(), processes.name_id.tolist(), strict=True):
        word = word_in(trace.strings[name_id]) if device >= 0 and name_id >= 0 else ""
        if word:
            found[device] = word
    return found


def device_word(trace: Trace, device: int) -> str:
    """``GPU``, ``MTIA``, ``NPU`` ... for one device, by its index in the trace."""
    return _words(trace).get(device, USUAL)


def devices_word(trace: Trace) -> str:
    """The word for all devices of a trace: the usual one where they are of several kinds."""
    words = set(_words(trace).values())
    return words.pop() if len(words) == 1 else USUAL
