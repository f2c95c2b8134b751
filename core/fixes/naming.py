"""What a module calls torch and its parts, and names that are free."""

from __future__ import annotations

import ast

from core.fixes.source_text import NotApplicable, SourceText, dotted


def imported_as(source: SourceText, module: str) -> str:
    """Name under which a module is reachable by an import at the top of the file, "" when it is not.

    ``import torch.nn.functional as F`` and ``from torch.nn import functional as F`` both give ``F``.
    """
    parent, _, last = module.rpartition(".")
    for node in source.tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == module and alias.asname:
                    return alias.asname
        elif isinstance(node, ast.ImportFrom) and node.module == parent and not node.level:
            for alias in node.names:
                if alias.name == last:
                    return alias.asname or alias.name
    for node in source.tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if not alias.asname and (alias.name == module or alias.name.startswith(f"{module}.")):
                    return module
    return ""


def torch_name(source: SourceText) -> str:
    """What the module calls torch; an import is added where there is none."""
    name = imported_as(source, "torch")
    if not name:
        add_import(source, "import torch")
        return "torch"
    return name


def functional_name(source: SourceText) -> str:
    """What the module calls ``torch.nn.functional``."""
    return imported_as(source, "torch.nn.functional") or f"{torch_name(source)}.nn.functional"


def add_import(source: SourceText, line: str) -> None:
    """Add an import below the last one of the module's head."""
    imports = [n for n in source.tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    if imports:
        source.insert_line_after(head_imports(source)[-1] if head_imports(source) else imports[-1], line)
    elif source.tree.body:
        first = source.tree.body[0]
        if _is_docstring(first):
            source.insert_line_after(first, "", line)
        else:
            source.insert_line_before(first, line, "")
    else:
        raise NotApplicable("the file is empty")


def head_imports(source: SourceText) -> list[ast.stmt]:
    """Imports at the head of the module, up to the first other statement (docstring aside)."""
    head: list[ast.stmt] = []
    for node in source.tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            head.append(node)
        elif not (_is_docstring(node) and not head):
            break
    return head


def add_switch(source: SourceText, line: str) -> None:
    """Add a statement that sets something for the whole program, below the imports at the module's head."""
    head = head_imports(source)
    if head:
        source.insert_line_after(head[-1], "", line)
    else:
        raise NotApplicable("the file has no imports at its head")


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def is_module_class(node: ast.ClassDef) -> bool:
    """Whether a class is derived from ``nn.Module`` directly."""
    return any(dotted(base).rpartition(".")[2] == "Module" for base in node.bases)


def attributes_of(node: ast.ClassDef) -> set[str]:
    """Names that a class uses as attributes or methods."""
    found = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute) and dotted(n.value) == "self"}
    found |= {n.name for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
    return found | {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def free_name(wanted: str, taken: set[str]) -> str:
    """The wanted name, or the first numbered one that is free."""
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name


def local_names(scope: ast.AST) -> set[str]:
    """Parameters of a function and names it binds (empty for a module, whose names last)."""
    if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        return set()
    arguments = scope.args
    names = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    names |= {a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None}
    outside = {n for node in ast.walk(scope) if isinstance(node, ast.Global | ast.Nonlocal) for n in node.names}
    bound = {n.id for n in ast.walk(scope) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    imported = {
        (a.asname or a.name).partition(".")[0]
        for n in ast.walk(scope)
        if isinstance(n, ast.Import | ast.ImportFrom)
        for a in n.names
    }
    return (names | bound | imported) - outside
