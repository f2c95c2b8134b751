"""Why a file whose list of events was found is refused all the same, and what to do about it."""

from __future__ import annotations

from core.errors import TraceError
from core.words import grouped

OPEN_ANOTHER = (
    "Open the .json or .json.gz file that torch.profiler wrote (export_chrome_trace or tensorboard_trace_handler)."
)
_AGAIN = "The file is damaged, or it is no trace. Profile again, or copy the file again."


def what_text_is(start: bytes) -> tuple[str, str, str]:
    """What a file is that begins with no JSON, more about it, and what to do: a trace may stand behind other text."""
    if b"\x00" in start[:4096]:
        return "it is a binary file", "", ""
    words = " ".join(start[:200].decode("utf-8", "replace").split())[:40]  # lines one after the other
    shown = "".join(c if c.isprintable() else "\ufffd" for c in words)
    if b'"traceEvents"' in start or b'"ph"' in start:
        advice = "Delete what stands before the first event, or record again into a file of its own."
        return "it begins with other text", f"It starts with “{shown}”.", advice
    return "it is plain text, not JSON", f"It starts with “{shown}”.", ""


def no_json(name: str, start: bytes) -> TraceError:
    """Text that begins like a list and holds none."""
    what, more, advice = what_text_is(start)
    return TraceError(f"{name} is not a PyTorch trace: {what}.", more, advice or advice_for(name), 0)


def advice_for(name: str) -> str:
    """What to open instead of a file of this name."""
    if name.lower().endswith((".py", ".ipynb")):
        return "It is a script by its name: profile it, and open the trace that comes of it."
    return OPEN_ANOTHER


def nothing_unpacked(name: str, size_bytes: int) -> TraceError:
    """A file with bytes, and no text in it."""
    return TraceError(
        f"{name} holds nothing that can be read.",
        f"It is {grouped(size_bytes)} bytes long, but what is compressed in it is empty, or damaged from its start.",
        "Copy the file again, or profile again.",
        0,
    )


def no_event(name: str, entries: int) -> TraceError:
    """A list, but of something else."""
    return TraceError(
        f"{name} is not a Chrome or PyTorch trace.",
        f"It holds a list of {entries} entries, none of which is an event.",
        "Open the .json or .json.gz file that torch.profiler wrote.",
        0,
    )


def mostly_waste(name: str, limit: int, offset: int) -> TraceError:
    """Entry after entry that is no event."""
    return TraceError(
        f"{name} holds more than {grouped(limit)} entries that are no events.",
        f"They are nearly all of what stands in its first {grouped(offset)} bytes.",
        _AGAIN,
        offset,
    )


def huge_value(name: str, limit_bytes: int, offset: int) -> TraceError:
    """One entry that is larger than any event."""
    return TraceError(
        f"{name} holds one value of more than {limit_bytes >> 20} MB.",
        f"It starts at byte {offset} and has no end within reach; an event is never that large.",
        "The file is damaged there, or it is no trace.",
        offset,
    )


def nothing_readable(name: str, offset: int) -> TraceError:
    """Text where events should be, and not one of them whole."""
    return TraceError(
        f"{name} is damaged: none of its events can be read.",
        f"What stands from byte {offset} on breaks off, or is no JSON, and no repair helped.",
        "The job probably ended while it was writing; profile again, or copy the file again.",
        offset,
    )
