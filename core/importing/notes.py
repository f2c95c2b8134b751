"""The import report's words: one entry per kind of loss or repair."""

from __future__ import annotations

from core.importing.columns import EventColumns
from core.trace import ImportNote, ImportReport

# code -> (severity, dropped, title, advice). Titles may hold {count}.
NOTES: dict[str, tuple[str, bool, str, str]] = {
    "not-an-event": (
        "warning",
        True,
        "{count} {count|entry of the event list is no event|entries of the event list are no events}.",
        "Nothing there could be drawn; a tool that filters traces leaves such entries behind.",
    ),
    "no-phase": (
        "warning",
        True,
        "{count} {count|event does not say what kind of event it is|events do not say what kind of event they are}.",
        "Left out, because the field ph is missing.",
    ),
    "unknown-phase": (
        "info",
        True,
        "{count} {count|event is|events are} of a kind that this program does not draw.",
        "Left out: PyTorch does not write this phase of the Chrome format.",
    ),
    "no-time": (
        "warning",
        True,
        "{count} {count|event has|events have} no usable time.",
        "Left out: ts must be a finite number of microseconds. One too large for that, such as nanoseconds since 1970 "
        "written as microseconds, cannot be placed in time either.",
    ),
    "profiler-span": (
        "info",
        False,
        "{count} {count|bar of the profiler itself is|bars of the profiler itself are} not drawn.",
        "Such bars only say from when to when the profiler ran, and what it did meanwhile.",
    ),
    "no-duration": (
        "warning",
        False,
        "{count} {count|event has|events have} no valid duration.",
        "Drawn as a mark, and left out of sums. An event that had not ended when the profiler stopped is "
        "often written this way.",
    ),
    "unfinished": (
        "warning",
        False,
        "{count} {count|event begins and never ends|events begin and never end}.",
        "Drawn to the end of the trace, and left out of averages.",
    ),
    "unmatched-end": (
        "warning",
        True,
        "{count} {count|end has|ends have} no beginning.",
        "What ended there had begun before the recording started.",
    ),
    "crossing": (
        "info",
        False,
        "{count} {count|slice crosses another slice of its track|slices cross another slice of their track}.",
        "Drawn in a row of its own. Frames and ranges may cross; a frame that outlasts its caller lost "
        "its return event.",
    ),
    "counter-left-out": (
        "warning",
        False,
        "{count} {count|counter is|counters are} not shown.",
        "The trace names more counters than anybody could look at; the first of them are shown.",
    ),
    "dangling-flow": (
        "info",
        False,
        "{count} {count|arrow has|arrows have} an end missing.",
        "Not drawn: the other end lies outside the recording, or the call launched no device work.",
    ),
    "unnumbered-step": (
        "warning",
        False,
        "{count} {count|step marker has|step markers have} no number.",
        "Shown as a range, and not counted as a step.",
    ),
    "backslashes-repaired": (
        "warning",
        False,
        "The file is not valid JSON: {count} {count|backslash was|backslashes were} not escaped.",
        "Taken for plain backslashes. PyTorch on Windows wrote paths this way; a newer version does not.",
    ),
    "control-characters-repaired": (
        "warning",
        False,
        "The file is not valid JSON: {count} {count|raw control character|raw control characters} stood in names.",
        "Each is shown as a replacement character.",
    ),
    "invalid-utf8-repaired": (
        "warning",
        False,
        "The text is damaged in {count} {count|place|places}: the bytes there are not UTF-8.",
        "Each is shown as a replacement character. PyTorch with Python 3.11 and with_stack=True was known for this.",
    ),
    "surrogates-repaired": (
        "info",
        False,
        "{count} {count|half character was|half characters were} replaced.",
        "A lone surrogate is no character; each is shown as a replacement character.",
    ),
    "bare-words-repaired": (
        "warning",
        False,
        "The file is not valid JSON: {count} {count|number is written as a word|numbers are written as words}.",
        "Words such as nan, inf and N/A were read as what they say.",
    ),
    "huge-numbers-repaired": (
        "warning",
        False,
        "{count} {count|event holds|events hold} numbers too large for any use.",
        "Each was left out of its event; an event whose time is such a number has no usable time.",
    ),
    "commas-repaired": (
        "info",
        False,
        "{count} {count|comma too many or too few was|commas too many or too few were} forgiven.",
        "The file is not quite valid JSON.",
    ),
    "quotes-repaired": (
        "warning",
        False,
        "The file is not valid JSON: {count} {count|event holds|events hold} quotation marks that were not escaped.",
        "Names were read up to the end of the field. PyTorch 2.13 writes such names for "
        "record_function labels with quotation marks.",
    ),
    "event-unreadable": (
        "warning",
        True,
        "{count} {count|event|events} could not be read.",
        "Left out, because the JSON there is damaged beyond repair; all other events are shown.",
    ),
    "truncated": (
        "error",
        False,
        "The file ends early: what came after is missing (GPU work may be among it).",
        "Everything up to the cut is shown; there is no verdict and no plan, since both could be wrong. The job "
        "probably ended while it was writing: profile again, or copy the file again.",
    ),
    "brackets-missing": (
        "warning",
        False,
        "The closing brackets of the file are missing.",
        "All events are shown. The job probably ended before it had finished writing.",
    ),
    "nested-events": (
        "info",
        False,
        "The events stood in lists inside the list of events.",
        "Read as if all stood in one list.",
    ),
    "lines-of-events": (
        "info",
        False,
        "The file holds one event per line instead of a list.",
        "The events were read line by line.",
    ),
    "gzip-truncated": (
        "error",
        False,
        "The file ends early: what came after is missing (GPU work may be among it).",
        "Everything up to the cut of the compressed data is shown; there is no verdict and no plan, since both could "
        "be wrong. Copy the file again, or profile again.",
    ),
    "gzip-checksum": (
        "warning",
        False,
        "The checksum of the compressed file is wrong.",
        "Its content was read to the end, but some of it may be damaged. Copy the file again.",
    ),
    "gzip-trailing-bytes": (
        "info",
        False,
        "{count} {count|byte after the compressed data was|bytes after the compressed data were} ignored.",
        "What stands there belongs to no trace.",
    ),
    "utf16": (
        "info",
        False,
        "The file is UTF-16 or UTF-32 and was converted.",
        "Save traces as UTF-8: they are at most half as large and open faster.",
    ),
    "compressed-twice": (
        "info",
        False,
        "The file is compressed twice.",
        "It was unpacked twice.",
    ),
    "no-usable-events": (
        "warning",
        False,
        "No event of this trace can be drawn.",
        "What it holds are names, or events without what is needed to place them: the other notes say which.",
    ),
    "no-events": (
        "warning",
        False,
        "This trace has no events.",
        "Nothing was recorded in its window. Check that the profiled code ran between start and stop of the profiler.",
    ),
    "trailing-text": (
        "info",
        False,
        "{count} {count|byte after the end of the trace was|bytes after the end of the trace were} ignored.",
        "What stands there belongs to no trace.",
    ),
    "second-trace": (
        "warning",
        False,
        "More events stand behind the end of the trace.",
        "They were left out: another rank or another export wrote into the same file, or the end of the list is "
        "damaged. Write each trace into a file of its own, and open the files together.",
    ),
    "file-left-out": (
        "warning",
        False,
        "{count} {count|file of the folder was|files of the folder were} left out.",
        "Only traces were opened.",
    ),
    "copy-left-out": (
        "warning",
        False,
        "{count} {count|file of the folder holds|files of the folder hold} the same as another one.",
        "If another rank was meant to be there, copy its file again.",
    ),
    "rank-twice": (
        "warning",
        False,
        "{count} {count|rank is|ranks are} in more than one file, at the same time.",
        "Open one file of each rank, all of the same run.",
    ),
    "clocks-not-comparable": (
        "warning",
        False,
        "The ranks' clocks have nothing in common.",
        "Each rank is drawn from its own first event, so times of different ranks must not be compared.",
    ),
}


def make_note(code: str, count: int, example: str) -> ImportNote:
    """Note of a code with its words."""
    severity, dropped, title, advice = NOTES[code]
    return ImportNote(code, severity, count, title, advice, dropped, example)


def make_report(columns: EventColumns) -> ImportReport:
    """Report on one file."""
    notes = []
    for code, count in sorted(columns.problems.items()):
        notes.append(make_note(code, count, columns.examples.get(code, "")))
    lost = sum(note.count for note in notes if note.dropped)
    rank = {"error": 0, "warning": 1, "info": 2}
    notes.sort(key=lambda note: (rank[note.severity], note.code))
    return ImportReport(events_read=columns.events, events_kept=max(columns.events - lost, 0), notes=tuple(notes))


def add_file_notes(columns: EventColumns, notes: list[tuple[str, str, int]]) -> None:
    """Add what was said about the file as a whole."""
    cut = any(code == "gzip-truncated" for code, _, _ in notes)
    for code, example, count in notes:
        if not (cut and code in ("truncated", "brackets-missing")):  # the one thing said once
            columns.note(code, example, count)
