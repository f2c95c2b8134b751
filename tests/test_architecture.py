"""The import directions hold, the check of them can fail, and files and functions keep their size."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("core", "gui", "profiling", "resources")
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60


def _sources() -> list[Path]:
    return sorted(p for name in PACKAGES for p in (ROOT / name).rglob("*.py")) + [ROOT / "main.py"]


def _lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages without their contents' weight: sources and the contracts only."""
    folder = tmp_path_factory.mktemp("tree")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / name, ignore=lambda d, names: [n for n in names if _not_source(d, n)])
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def _not_source(folder: str, name: str) -> bool:
    path = Path(folder) / name
    return name == "__pycache__" or (path.is_file() and path.suffix != ".py")


def test_the_untouched_copy_passes(copy: Path) -> None:
    result = _lint(copy)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("core/units.py", "import PySide6"),
        ("core/trace.py", "import torch"),
        ("core/trace.py", "import subprocess"),
        ("core/trace.py", "import profiling"),
        ("core/trace.py", "import gui.session"),
        ("profiling/spec.py", "import PySide6"),
        ("profiling/spec.py", "import core.trace"),
        ("gui/session.py", "import torch"),
    ],
)
def test_each_contract_can_fail(copy: Path, file: str, line: str) -> None:
    path = copy / file
    before = path.read_text(encoding="utf-8") if path.exists() else '"""Injected."""\n'
    path.write_text(before + f"\n{line}\n", encoding="utf-8")
    try:
        result = _lint(copy)
        assert result.returncode != 0
        assert "BROKEN" in result.stdout
    finally:
        path.write_text(before, encoding="utf-8")


@pytest.mark.parametrize("package", ["core/rules", "gui/panels", "gui/timeline/overlays"])
def test_siblings_do_not_import_each_other(copy: Path, package: str) -> None:
    modules = sorted(p for p in (copy / package).glob("*.py") if p.stem != "__init__")
    assert len(modules) >= 2, f"{package} has fewer than two modules"
    first, second = modules[:2]
    before = first.read_text(encoding="utf-8")
    first.write_text(before + f"\nimport {package.replace('/', '.')}.{second.stem}\n", encoding="utf-8")
    try:
        assert _lint(copy).returncode != 0
    finally:
        first.write_text(before, encoding="utf-8")


def _imported(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def test_main_imports_nothing_heavy_at_the_top() -> None:
    tree = ast.parse((ROOT / "main.py").read_text(encoding="utf-8"))
    top = ast.Module(body=[n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)], type_ignores=[])
    assert _imported(top).isdisjoint({"torch", "PySide6", "pyqtgraph", "numpy", "orjson", "gui"})


def test_torch_is_imported_only_by_the_child() -> None:
    users = [p.relative_to(ROOT) for p in _sources() if "torch" in _imported(ast.parse(p.read_text(encoding="utf-8")))]
    assert users
    assert all(p.parts[0] == "profiling" and p.name.startswith("_child") for p in users), users


def test_sizes() -> None:
    long: list[str] = []
    for path in _sources():
        text = path.read_text(encoding="utf-8")
        if text.count("\n") > MAX_FILE_LINES:
            long.append(f"{path.relative_to(ROOT)}: {text.count(chr(10))} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MAX_FUNCTION_LINES:
                    long.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {lines} lines")
    assert not long, "\n".join(long)


def test_no_bare_except_and_nothing_left_open() -> None:
    for path in _sources():
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            assert not (isinstance(node, ast.ExceptHandler) and node.type is None), f"{path}:{node.lineno} bare except"
        for word in ("TO" + "DO", "FIX" + "ME", "raise NotImplemented" + "Error"):
            assert word not in text, f"{path}: {word}"


def test_dependencies_are_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").lower().replace("_", "-")
    wanted = project["dependencies"] + project["optional-dependencies"]["dev"] + ["torch"]
    for requirement in wanted:
        name = requirement.split(";")[0].split(">")[0].split("<")[0].split("=")[0].strip().lower()
        assert f"\n{name}==" in f"\n{pins}", f"{name} is not pinned"
    assert "torch==2.13.0" in pins
