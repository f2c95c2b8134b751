"""What a helper does while it waits for its first trace touches everything that a trace needs."""

import subprocess
import sys
from pathlib import Path

from core.analysis import analyze
from core.rehearsal import STEPS, rehearsal_trace
from core.suggestions import Outcome

ROOT = Path(__file__).resolve().parents[2]


def test_the_made_up_trace_is_whole_and_every_stage_has_something_to_do():
    trace = rehearsal_trace()
    assert trace.report.notes == ()
    assert len(trace.steps) == STEPS
    assert len(trace.links.launched) == 2 * STEPS
    analysis = analyze(trace)
    assert not [r for r in analysis.rules if r.outcome is Outcome.FAILED]
    assert analysis.suggestions and analysis.suggestions[0].saving.ns
    assert analysis.figures.summary.replay_error_pct is not None


def test_nothing_is_imported_any_more_afterwards(tmp_path):
    """Reading and diagnosing a real file then needs no further module of ours or of numpy."""
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from benchmarks.generate import write_trace\n"
        "from core import rehearsal\n"
        "from core.analysis import analyze\n"
        "from core.importing import open_trace\n"
        "rehearsal.rehearse()\n"
        "with open(sys.argv[1], 'wb') as file: write_trace(file, 3000)\n"
        "before = set(sys.modules)\n"
        "analyze(open_trace(Path(sys.argv[1])))\n"
        "print(sorted(n for n in set(sys.modules) - before if n.partition('.')[0] in ('core', 'numpy')))\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "t.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]", done.stderr
