"""The headless contract, through ``main.main``."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

import main
from tests.core.reporting.cases import training
from tests.core.reporting.schema import ANALYSIS, COMPARISON, check
from tests.shared import TRACES, needs_shared

ROOT = Path(main.__file__).parent


class Output:
    """What a command printed, and its exit status."""

    def __init__(self, capfdbinary, *arguments: object) -> None:
        try:
            self.status = main.main([str(a) for a in arguments])
        except SystemExit as stop:  # argparse
            self.status = stop.code
        self.out, errors = capfdbinary.readouterr()
        self.errors = errors.decode()


@pytest.fixture
def run(capfdbinary):
    return lambda *arguments: Output(capfdbinary, *arguments)


@pytest.fixture(scope="module")
def traces(tmp_path_factory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("traces")
    return (
        training().write(folder / "before.json"),
        training(item=False, kernel_us=30).write(folder / "after.json"),
    )


def test_version(run):
    done = run("--version")
    assert done.status == 0
    assert done.out.decode().startswith("StepLens ")


@pytest.mark.parametrize("command", [(), *((c,) for c in main.COMMANDS)])
def test_help(run, command):
    done = run(*command, "--help")
    assert done.status == 0
    assert b"usage: main.py" in done.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("--nonsense",),
        ("analyze",),
        ("analyze", "a", "b"),
        ("analyze", "a", "--nonsense"),
        ("analyze", "a.json", "--fail-on", "nonsense"),
        ("analyze", "a.json", "--fail-on", ""),
        ("compare", "a"),
        ("report", "a"),
        ("screenshot", "a", "b.png", "--size", "big"),
        ("screenshot", "a", "b.png", "--start-us", "1"),
        ("screenshot", "a", "b.png", "--start-us", "2", "--end-us", "1"),
        ("screenshot", "a", "b.png", "--theme", "blue"),
        ("analyse", "a.json"),
        ("--bogus",),
        ("report", "a.json", "b.txt"),
        ("screenshot", "a.json", "b.jpg"),
        ("profile", "x.py", "--env", "A"),
        ("profile", "x.py", "--env", "=3"),
        ("profile", "x.py", "--skip", "-1"),
        ("profile", "x.py", "--active", "0"),
        ("profile", "x.py", "--warmup", "two"),
        ("profile", "x.py", "--gpu", "0,,1"),
        ("profile", "x.py", "--whole-seconds", "nan"),
    ],
)
def test_wrong_arguments(run, arguments):
    done = run(*arguments)
    assert done.status == 2
    assert done.out == b""
    assert "error:" in done.errors
    assert "Traceback" not in done.errors


BAD = {
    "empty.json": b"",
    "cut.json": b'{"traceEvents": [{"ph": "X", "na',
    "page.json": b"<!DOCTYPE html><html></html>",
    "config.json": b'{"lr": 0.1}',
    "number.json": b"42",
    "broken.json.gz": b"\x1f\x8b\x08\x00garbage",
    "binary.json": bytes(range(256)),
}


@pytest.mark.parametrize("name", [n for n in BAD if n != "cut.json"])
@pytest.mark.parametrize("command", ["analyze", "report"])
def test_unusable_input(run, tmp_path, name, command):
    path = tmp_path / name
    path.write_bytes(BAD[name])
    out = [tmp_path / "out.html"] if command == "report" else []
    done = run(command, path, *out)
    assert done.status == 3
    assert done.out == b""
    assert done.errors.count("\n") == 1
    assert name in done.errors
    assert sorted(p.name for p in tmp_path.iterdir()) == [name]


def test_missing_input(run, tmp_path):
    for arguments in (("analyze", "none.json"), ("compare", "none.json", "x.json"), ("none.json",)):
        done = run(*arguments)
        assert done.status == 3
        assert "none.json" in done.errors


def test_analyze_text(run, traces):
    done = run("analyze", traces[0])
    assert done.status == 0
    text = done.out.decode()
    assert text.startswith("before.json\n")
    assert "Step times" in text
    assert "\x1b" not in text
    assert done.errors == ""


def test_analyze_json(run, traces):
    done = run("analyze", traces[0], "--json")
    assert done.status == 0
    values = orjson.loads(done.out)
    check(values, ANALYSIS)
    assert values["trace"]["path"] == str(traces[0])
    assert done.errors == ""


def test_gate_and_allow_file(run, traces, tmp_path):
    found = orjson.loads(run("analyze", traces[0], "--json").out)["suggestions"]
    assert "scalar-read-back" in [s["rule"] for s in found]
    done = run("analyze", traces[0], "--json", "--fail-on", "scalar-read-back")
    assert done.status == 5
    check(orjson.loads(done.out), ANALYSIS)
    assert "--fail-on scalar-read-back: scalar-read-back:" in done.errors
    allow = tmp_path / "allow.toml"
    allow.write_text(
        '[[allow]]\nrule = "scalar-read-back"\nreason = "meant"\n'
        '[[allow]]\nrule = "launch-bound"\nfile="x.py"\nreason = "x"\n'
    )
    done = run("analyze", traces[0], "--allow", allow, "--fail-on", "scalar-read-back")
    assert done.status == 0
    assert "is it still needed?" in done.errors
    many = tmp_path / "many.toml"
    many.write_text('[[allow]]\nrule = "no-such-rule"\nreason = "x"\n' * 2008)
    told = run("analyze", traces[0], "--json", "--allow", many).errors
    assert told.count("is it still needed?") == 8
    assert "2\u202f000 further entries" in told
    whole, said = run("analyze", traces[0]).out.decode(), done.out.decode()
    plan, _, apart = said.partition("Not counted in the plan")
    title = next(s["title"] for s in found if s["rule"] == "scalar-read-back")
    assert title in whole
    assert title.replace("`", "") in " ".join(apart.replace("`", "").split())
    assert "allowed: meant" in apart
    assert title not in plan  # and no saving of it is counted there
    every = orjson.loads(run("analyze", traces[0], "--json", "--allow", allow).out)
    assert [s["rule"] for s in every["suggestions"]] == [s["rule"] for s in found]
    assert run("analyze", traces[1], "--fail-on", "scalar-read-back").status == 0
    allow.write_text("nonsense")
    assert run("analyze", traces[0], "--allow", allow).status == 3


def test_compare(run, traces):
    done = run("compare", *traces, "--json")
    assert done.status == 0
    check(orjson.loads(done.out), COMPARISON)
    done = run("compare", *traces)
    assert done.status == 0
    assert b"gone: aten::item" in done.out


def test_report(run, traces, tmp_path):
    out = tmp_path / "out.html"
    done = run("report", traces[0], out)
    assert done.status == 0
    assert done.out.decode() == f"{out}\n"
    assert out.read_text("utf-8").startswith("<!doctype html>")


def test_a_report_takes_out_what_is_allowed(run, traces, tmp_path):
    out, allow = tmp_path / "out.html", tmp_path / "allow.toml"
    allow.write_text('[[allow]]\nrule = "scalar-read-back"\nreason = "meant"\n')
    done = run("report", traces[0], out, "--allow", allow)
    assert done.status == 0
    assert "are allowed by" in done.errors
    page = out.read_text("utf-8")
    assert "allowed: meant" in page[page.index("Not counted in the plan") :]
    allow.write_text("nonsense")
    out.unlink()
    assert run("report", traces[0], out, "--allow", allow).status == 3
    assert not out.exists()


def test_outputs_never_destroy(run, traces, tmp_path):
    link = tmp_path / "link.html"
    link.symlink_to(traces[0])
    before = traces[0].read_bytes()
    for out in (traces[0], link, tmp_path, tmp_path / "none" / "a.html", tmp_path / "a.json"):
        done = run("report", traces[0], out)
        assert done.status == (3 if out.suffix == ".html" else 2)
        assert done.errors.startswith("steplens: error:")
    assert traces[0].read_bytes() == before
    assert run("screenshot", traces[0], tmp_path / "a.jpg").status == 2


def test_cancelled(run, traces, monkeypatch):
    import core.importing

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(core.importing, "open_trace", interrupted)
    done = run("analyze", traces[0])
    assert done.status == 130
    assert done.out == b""


def test_progress_only_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    progress = main.Progress()
    progress.part(0.5, 1.0)(0.5, "reading")
    progress.clear()
    assert " 75 % reading" in sys.stderr.getvalue()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    quiet = main.Progress()
    quiet(0.5, "reading")
    assert sys.stderr.getvalue() == ""


def test_headless_commands_load_neither_qt_nor_torch(traces):
    code = (
        "import sys, main\n"
        f"assert main.main(['analyze', {str(traces[0])!r}, '--json']) == 0\n"
        "loaded = {'PySide6', 'torch', 'pyqtgraph'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.skipif(os.name == "nt", reason="pipes of another kind")
def test_reader_that_goes_away_is_harmless(traces):
    command = f"{sys.executable} main.py analyze {traces[0]} --json | head -c 1 >/dev/null; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0
    assert done.stderr == b""


@pytest.mark.skipif(os.name == "nt", reason="handles of another kind")
@pytest.mark.parametrize(("to", "says"), [(">&-", b"closed"), (">/dev/full", b"No space left")])
@pytest.mark.parametrize("how", [[], ["--json"]])
def test_an_output_that_cannot_be_written_is_said_so(traces, to, says, how):
    command = f"{sys.executable} main.py analyze {traces[0]} {' '.join(how)} {to}"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 3
    assert says in done.stderr
    assert done.stderr.count(b"\n") == 1
    assert b"fault of StepLens" not in done.stderr


def test_an_empty_path_is_not_the_current_folder(run):
    for arguments in ([""], ["analyze", ""], ["report", "", "a.html"], ["compare", "a.json", ""]):
        done = run(*arguments)
        assert done.status == 2
        assert "path is empty" in done.errors


@pytest.mark.parametrize("number", ["-1e18", "-1E-3", "-.5", "-2.e+3", "-inf", "-7"])
def test_a_negative_number_is_the_value_of_its_option(run, number):
    done = run("screenshot", "gone.json", "x.png", "--start-us", number, "--end-us", "5")
    expected = (2, "must be numbers") if number == "-inf" else (3, "gone.json does not exist")
    assert (done.status, expected[1] in done.errors) == (expected[0], True)
    done = run("profile", "gone.py", "--skip", number)
    assert done.status == 2
    assert "no whole number" in done.errors


def test_an_unknown_option_shows_the_usage_of_its_command(run, traces):
    done = run("analyze", "--foo", traces[0])
    assert done.status == 2
    assert "usage: main.py analyze" in done.errors and "--fail-on" in done.errors
    assert "unrecognized arguments: --foo" in done.errors


@pytest.mark.parametrize("own", ["--batch", "--steps"])
def test_options_of_the_script_before_the_border_are_sent_behind_it(run, own):
    done = run("profile", "train.py", own, "16")
    assert done.status == 2
    assert "usage: main.py profile" in done.errors
    assert "behind --" in done.errors.splitlines()[-1]


def test_an_unknown_option_without_a_command_is_named(run):
    assert "unrecognized arguments: --bogus" in run("--bogus", "a.json").errors
    assert run("--vers").status == 0


@pytest.mark.skipif(os.name == "nt", reason="the limit is another one there")
def test_a_path_that_is_too_long_is_no_fault_of_ours(run, traces):
    path = "a" * 5000
    for arguments in ([path], ["analyze", path], ["compare", traces[0], path], ["report", traces[0], path + ".html"]):
        done = run(*arguments)
        assert done.status == 3, done.errors
        assert "fault of StepLens" not in done.errors
        assert len(done.errors) < 1000


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("program", "start"),
    [("main.py", "runpy.run_path('main.py', run_name='__main__')"), ("bin/steplens", "import main")],
)
@pytest.mark.usefixtures("signals_heard")
def test_an_interrupt_while_modules_load_ends_quietly(program, start):
    """The interrupt comes when main.py asks for one of its first modules."""
    lines = (
        "import builtins, os, runpy, signal, sys",
        f"sys.argv = ['{program}', '--version']",
        "load = builtins.__import__",
        "def loading(name, *rest):",
        "    if name == 'difflib': os.kill(os.getpid(), signal.SIGINT)",
        "    return load(name, *rest)",
        "builtins.__import__ = loading",
        start,
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_names_of_files_are_bytes_and_may_hold_anything(run, traces, tmp_path):
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\x1b[31m.json"))
    odd.write_bytes(traces[0].read_bytes())
    out = odd.with_suffix(".html")
    done = run("report", odd, out)
    assert (done.status, done.out) == (0, os.fsencode(out) + b"\n")
    assert out.read_text("utf-8").startswith("<!doctype html>")
    assert run("analyze", odd, "--json").status == 0
    assert b"\x1b" not in run("analyze", odd).out
    odd.write_text("no trace")
    done = run("analyze", odd)
    assert done.status == 3
    assert "\x1b" not in done.errors


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_an_output_behind_a_link_is_written_where_the_link_leads(run, traces, tmp_path):
    link, real = tmp_path / "link.html", tmp_path / "real.html"
    link.symlink_to(real)
    for _ in range(2):
        assert run("report", traces[0], link).status == 0
        assert link.is_symlink()
        assert real.read_text("utf-8").startswith("<!doctype html>")
    device = tmp_path / "device.html"
    device.symlink_to("/dev/null")
    assert run("report", traces[0], device).status == 3


@needs_shared
def test_text_reports_of_real_traces(run):
    for name in ("d11", "m19", "m46", "d03"):
        path = next(TRACES.glob(f"{name}_*"))
        done = run("analyze", path)
        assert done.status == 0
        assert "Step times" in done.out.decode()
