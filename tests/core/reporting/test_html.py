"""The page to send: self-contained, escaped, drawn from the tables."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from core.analysis import Analysis, analyze
from core.importing import open_trace
from core.reporting import html, picture
from core.suggestions import Saving
from tests.core.reporting.cases import NOTE, SUGGESTION, training, with_suggestions
from tests.shared import TRACES, needs_shared
from tests.trace_builder import TraceBuilder


class Reader(HTMLParser):
    """Collects tags and text; fails on tags that do not close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_page_says_everything():
    text = html.page(*with_suggestions(training(), SUGGESTION, NOTE))
    reader = Reader(text)
    words = " ".join(reader.words)
    for part in ("Sustained step", "900 µs → 630 µs", "A value is read back 4 times", "train.py:12", "Sync points",
                 "ProfilerStep#", "Also seen", "Kernels and copies", "gemm", "could not be checked"):  # fmt: skip
        assert part in words
    assert {"svg", "table"} <= reader.tags


def test_page_is_self_contained():
    reader = Reader(html.page(*with_suggestions(training(), SUGGESTION)))
    assert not reader.tags & {"script", "link", "img", "iframe", "object", "embed", "form"}
    assert ("content", html.POLICY) in reader.attributes
    assert [name for name, _ in reader.attributes if name.startswith("on") or name == "src"] == []
    links = [value for name, value in reader.attributes if name == "href"]
    assert links == ["https://pytorch.org"]


EVIL = "<script>alert(1)</script>\"'&\x1b"


def test_every_text_is_escaped():
    builder = TraceBuilder(gpu=EVIL).step(1, 0, 900).op(EVIL, 10, 500).range(EVIL, 5, 600)
    builder.launch(EVIL, 20, 5, 40, 300).launch("void k<float, 4>(int)", 60, 5, 400, 100)
    evil = replace(
        SUGGESTION,
        title=EVIL.replace("{", "{{"),
        source=replace(SUGGESTION.source, file=EVIL, function=EVIL),
        fix=replace(SUGGESTION.fix, summary=EVIL, before=EVIL, after=EVIL, url="javascript:alert(1)", risk=EVIL),
    )
    text = html.page(*with_suggestions(builder, evil))
    reader = Reader(text)
    assert "script" not in reader.tags
    assert "<script" not in text
    assert "javascript:" not in text
    assert "\x1b" not in text
    assert any(EVIL.replace("\x1b", "\N{REPLACEMENT CHARACTER}") in word for word in reader.words)


def test_picture_is_valid_and_inside_its_frame():
    trace, analysis = with_suggestions(training())
    tree = ElementTree.fromstring(picture.draw(trace, analysis.figures))
    boxes = list(tree.iter("rect"))
    assert len(boxes) > 5
    for box in boxes:
        assert picture.LEFT <= float(box.get("x")) <= picture.WIDTH
        assert float(box.get("x")) + float(box.get("width")) <= picture.WIDTH + 1.5
    names = [t.text for t in tree.iter("title")]
    assert any(n.startswith("gemm") for n in names)
    assert any("cudaMemcpyAsync waits" in n for n in names)


def test_typical_step_is_one_near_the_median():
    trace, analysis = with_suggestions(training())
    window = picture.typical_step(trace, analysis.figures)
    assert window.name.startswith("ProfilerStep#")
    assert 900_000 <= window.end_ns - window.start_ns <= 2_700_000


@pytest.mark.parametrize("gpu", [None, "GPU"])
def test_page_of_almost_nothing(gpu):
    trace = TraceBuilder(gpu=gpu).op("aten::mm", 0, 10).build()
    text = html.page(trace, analyze(trace))
    Reader(text)
    assert "not 0 %" in text
    bare = html.page(trace, Analysis(analyze(trace).figures))
    assert "What was checked" not in bare


def test_picture_of_many_slices_stays_small():
    builder = TraceBuilder().step(1, 0, 100_000)
    for i in range(20_000):
        builder.op("aten::add", i * 5.0, 4.0)
    trace = builder.build()
    svg = picture.draw(trace, analyze(trace).figures)
    assert len(re.findall("<rect", svg)) <= picture.WIDTH * 3


@needs_shared
@pytest.mark.parametrize("name", ["d03", "d12", "d13", "m19", "m46", "m60"])
def test_pages_of_real_traces(name):
    trace = open_trace(next(TRACES.glob(f"{name}_*")))
    analysis = analyze(trace)
    Reader(html.page(trace, analysis))
    ElementTree.fromstring(picture.draw(trace, analysis.figures))


def test_a_name_of_fifty_thousand_letters_is_cut():
    builder = TraceBuilder().step(1, 0, 100).kernel("void begin<" + "tuple<C<128>>, " * 3000 + ">(end)", 5, 80)
    trace = builder.build()
    text = html.page(trace, analyze(trace))
    assert "tuple&lt;C&lt;128&gt;&gt;, " * 100 not in text
    assert "void begin" in text
    assert "…" in text
    assert "(end)" in text


def test_a_recording_of_the_cpu_has_no_tiles_of_a_device():
    trace = TraceBuilder(gpu=None).op("aten::mm", 0, 10).build()
    tiles = Reader(html.page(trace, analyze(trace))).words
    assert "Host step" in tiles
    assert not {"Period", "GPU busy", "Sync wait", "Device step"} & set(tiles)
    asked = TraceBuilder(gpu="GPU").op("aten::mm", 0, 10).build()
    assert "GPU busy" in Reader(html.page(asked, analyze(asked))).words  # there the device is unknown, and that is said


def test_a_rough_saving_is_marked_as_one():
    rough = replace(SUGGESTION, saving=Saving(50_000, 5.0, "rough", 50_000))
    trace, analysis = with_suggestions(training(), SUGGESTION)
    text = html.page(trace, replace(analysis, suggestions=(rough,), plan=()))
    assert "≈ −50 µs" in text.replace("\u202f", " ").replace("\xa0", " ")


def test_a_run_is_named_by_script_and_time_with_its_time_without_the_profiler(tmp_path):
    created = time.mktime((2026, 11, 30, 12, 31, 0, 0, 0, -1))
    manifest = {"format": "steplens.run/1", "name": "train.py", "created": created, "steps": {"wall_step_us": 7500}}
    (tmp_path / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    trace = training().build(tmp_path / "trace.json")
    words = Reader(html.page(trace, analyze(trace))).words
    assert "train.py, 12:31" in words
    assert words[words.index("Wall, no profiler") + 1] == "7.5 ms"


def test_waits_without_steps_are_those_of_the_recording(tmp_path):
    made = TraceBuilder()
    for at in (0, 1000):
        made.op("aten::item", at, 400).launch("gemm", at=at + 10, call=10, start=at + 30, dur=300)
        made.copy("DtoH (Device -> Pageable)", at=at + 40, call=320, start=at + 335, dur=5)
    trace = made.build(tmp_path / "t.json")
    text = html.page(trace, analyze(trace))
    assert re.search(r'Sync wait</div><div class="value">600 µs</div><div class="sub">in all, in 2 sync points<', text)
