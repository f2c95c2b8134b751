"""Colours and type of the page to send: those of the window, light and dark."""

from __future__ import annotations

# kind of slice -> (light, dark); red is waiting and nothing else
SLICES = {
    "op": ("#9bbcdc", "#3f7cb5"),
    "range": ("#b7a6e2", "#8a72c9"),
    "step": ("#d9dfe7", "#3a4350"),
    "runtime": ("#ecc294", "#c9803a"),
    "kernel": ("#93d3b9", "#3fa37c"),
    "memcpy": ("#ecd68c", "#c9a63c"),
    "memset": ("#cfd998", "#8fa04a"),
    "comm": ("#e6b3da", "#a0568f"),
}
# cause of idle time (as in core.kinds.GapCause, lower case) -> (light, dark)
GAPS = {
    "busy": ("#137547", "#4fc98f"),
    "computing": ("#137547", "#4fc98f"),
    "communication_only": ("#a0568f", "#c98ebb"),
    "copies_only": ("#76852f", "#a9b85c"),
    "loader": ("#d98b2b", "#d08a3e"),
    "sync": ("#d2453f", "#ff6b66"),
    "launch": ("#4d83cc", "#5b8fd6"),
    "python": ("#8369bd", "#9079c4"),
    "copy": ("#b8912a", "#c9a63c"),
    "compile": ("#3f8f94", "#57a3a8"),
    "collector": ("#b0588f", "#a85f8d"),
    "communication": ("#618f33", "#6f9f3f"),
    "alloc": ("#a8604b", "#b06a55"),
    "queued": ("#7d8794", "#8b95a3"),
    "unknown": ("#9aa3b0", "#6c7583"),
}
_LIGHT = {
    "window": "#ffffff",
    "panel": "#f3f5f8",
    "border": "#d5dbe3",
    "grid": "#e8ebf0",
    "text": "#15191f",
    "dim": "#4a5462",
    "faint": "#626c7a",
    "accent": "#1463cc",
    "wait": "#c4302b",
    "saved": "#137547",
    "warn": "#8a5a00",
    "added": "#dcf1e4",
    "removed": "#fbdfe0",
}
_DARK = {
    "window": "#171b21",
    "panel": "#1d2229",
    "border": "#333b46",
    "grid": "#262c35",
    "text": "#e8ebef",
    "dim": "#aab3be",
    "faint": "#8d97a4",
    "accent": "#5aa9ff",
    "wait": "#ff6b66",
    "saved": "#4fc98f",
    "warn": "#e5b04d",
    "added": "#1d3a2c",
    "removed": "#47262a",
}


def _variables(dark: bool) -> str:
    named = _DARK if dark else _LIGHT
    lines = [f"--{name}:{value}" for name, value in named.items()]
    lines += [f"--k-{name}:{pair[dark]}" for name, pair in SLICES.items()]
    lines += [f"--g-{name}:{pair[dark]}" for name, pair in GAPS.items()]
    return ";".join(lines)


RULES = """
*{box-sizing:border-box}
html{background:var(--window);color:var(--text);font:15px/1.5 system-ui,"Segoe UI",Roboto,"Noto Sans",sans-serif}
body{margin:0 auto;max-width:1180px;padding:32px 24px 64px}
h1{font-size:17px;margin:0;font-weight:600;overflow-wrap:anywhere}
h2{font-size:19px;margin:48px 0 12px;font-weight:600}
h3{font-size:15px;margin:0;font-weight:600}
p{margin:6px 0}
a{color:var(--accent)}
.dim{color:var(--dim)}.faint{color:var(--faint);font-size:13px}
.wait{color:var(--wait)}.saved{color:var(--saved)}.warn{color:var(--warn)}
code,pre,.mono{font-family:ui-monospace,"SF Mono",Consolas,"DejaVu Sans Mono",monospace;font-size:13px}
.verdict{margin:28px 0 20px}.verdict b{display:block;font-size:30px;line-height:1.2;font-weight:700}
.verdict span{font-size:17px;color:var(--dim)}
.tiles{display:flex;flex-wrap:wrap;gap:12px;margin:20px 0 8px}
.tile{flex:1 1 160px;background:var(--panel);border-radius:10px;padding:12px 16px}
.tile .name{color:var(--dim);font-size:13px}.tile .value{font-size:22px;font-weight:600;white-space:nowrap}
.tile .sub{color:var(--faint);font-size:12px;line-height:1.35;margin-top:2px}
.tile.main{outline:2px solid var(--accent);outline-offset:-2px}
.picture{background:var(--panel);border-radius:10px;padding:12px;overflow-x:auto}
svg{display:block;width:100%;height:auto}svg text{fill:var(--text);font:11px system-ui,sans-serif}
svg .label{fill:var(--dim)}svg .tick{fill:var(--faint);font-size:10px}svg .line{stroke:var(--border);stroke-width:1}
svg .waitbox{fill:url(#hatch);stroke:var(--wait);stroke-width:1}
svg .waitline{stroke:var(--wait);stroke-width:1;stroke-dasharray:3 3;fill:none}
.legend{display:flex;flex-wrap:wrap;gap:4px 18px;margin:10px 0 0;padding:0;list-style:none;font-size:13px}
.legend i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:6px;vertical-align:-1px}
.card{background:var(--panel);border-radius:10px;padding:16px 20px;margin:0 0 12px}
.card header{display:flex;gap:12px;align-items:baseline;justify-content:space-between}
.card .number{color:var(--faint);font-weight:600;margin-right:8px}
.card .gain{white-space:nowrap;font-weight:600}
.card ul{margin:8px 0;padding-left:20px}
.diff{background:var(--window);border:1px solid var(--border);border-radius:8px;margin:10px 0;padding:8px 0}
.diff{overflow-x:auto}.diff div{padding:0 12px;white-space:pre}
.diff .del{background:var(--removed)}.diff .add{background:var(--added)}
table{border-collapse:collapse;width:100%;font-size:13px}
th{color:var(--dim);font-weight:500;text-align:left;border-bottom:1px solid var(--border);padding:4px 10px 4px 0}
td{border-bottom:1px solid var(--grid);padding:4px 10px 4px 0;vertical-align:top;overflow-wrap:anywhere}
.num{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
details{margin:12px 0}summary{cursor:pointer;color:var(--dim)}
.note{border-left:3px solid var(--border);padding:2px 0 2px 14px;margin:10px 0}.note.odd{border-color:var(--warn)}
footer{margin-top:56px;color:var(--faint);font-size:12px}
@media print{body{max-width:none;padding:0}.card,.tile{break-inside:avoid}}
"""


def style() -> str:
    """Return the page's style sheet; the reader's system chooses light or dark."""
    fills = "".join(f".k-{name}{{fill:var(--k-{name})}}" for name in SLICES)
    fills += "".join(f".g-{name}{{fill:var(--g-{name});background:var(--g-{name})}}" for name in GAPS)
    return (
        f":root{{color-scheme:light dark;{_variables(False)}}}"
        f"@media (prefers-color-scheme:dark){{:root{{{_variables(True)}}}}}"
        f"{RULES}{fills}"
    )
