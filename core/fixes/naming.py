"""What a module calls torch and its parts, and names that are free."""

from __future__ import annotations

import ast

from core.fixes.source_text import NotApplicable, SourceText, dotted


def imported_as(source: SourceText, module: str) -> str:
    """Name under which a module is reachable by an import at the top of the file, "" when it is not.

    ``import torch.nn.functional as F`` and ``from torch.nn import functional as F`` both give ``F``.
    """
    return _import_of(source, module)[0]


def _import_of(source: SourceText, module: str) -> tuple[str, ast.stmt | None]:
    """Name of a module, and the statement at the top of the file by which it has it."""
    parent, _, last = module.rpartition(".")
    plain: tuple[str, ast.stmt | None] = "", None
    for outer in source.tree.body:
        for node in outer.body if isinstance(outer, ast.Try) else [outer]:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name == module and alias.asname:
                        return alias.asname, outer
                    if not plain[0] and not alias.asname and f"{alias.name}.".startswith(f"{module}."):
                        plain = module, outer
            elif isinstance(node, ast.ImportFrom) and node.module == parent and not node.level:
                for alias in node.names:
                    if alias.name == last:
                        return alias.asname or alias.name, outer
    return plain


def origin_of(source: SourceText, name: str) -> str:
    """Full name of what a dotted name is, by the imports at the top of the file; "" where none brings it."""
    root, _, rest = name.partition(".")
    for node in source.tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname == root:
                    return ".".join(filter(None, (alias.name, rest)))
                if not alias.asname and alias.name.partition(".")[0] == root:
                    return name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == root:
                    return ".".join(filter(None, ("." * node.level + (node.module or ""), alias.name, rest)))
    return ""


def torch_name(source: SourceText, at: ast.AST | None = None) -> str:
    """What the module calls torch; an import is added where there is none.

    Raises
    ------
    NotApplicable
        When the name is something else at a place.
    """
    name = imported_as(source, "torch")
    if not name:
        add_import(source, "import torch")
    check_visible(source, name or "torch", at)
    return name or "torch"


def check_visible(source: SourceText, name: str, at: ast.AST | None) -> None:
    """Check that a name of the module's is not a parameter or variable of the functions around a place.

    Raises
    ------
    NotApplicable
        When it is.
    """
    root = name.partition(".")[0]
    for above in (at, *source.parents(at)) if at is not None else ():
        if root in local_names(above, imports=False):
            raise NotApplicable(f"{root} is a name of the function's own here, and the module's name for torch")


def torch_word(source: SourceText) -> str:
    """What the module calls torch, to recognise it by; nothing is added."""
    return imported_as(source, "torch") or "torch"


def functional_name(source: SourceText, at: ast.AST | None = None) -> str:
    """What the module calls ``torch.nn.functional`` at a place; torch is imported where neither is known.

    Raises
    ------
    NotApplicable
        When the name is something else at the place.
    """
    name = imported_as(source, "torch.nn.functional")
    try:
        check_visible(source, name, at)
    except NotApplicable:
        name = ""
    return name or f"{torch_name(source, at)}.nn.functional"


def functional_word(source: SourceText) -> str:
    """What the module calls ``torch.nn.functional``, to recognise it by; nothing is added."""
    return imported_as(source, "torch.nn.functional") or f"{torch_word(source)}.nn.functional"


def add_import(source: SourceText, line: str) -> None:
    """Add an import below the last one of the module's head; one that was added already is not added again."""
    if line in source.added_imports:
        return
    source.added_imports.add(line)
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
    """Add a statement that sets something of torch's for the whole program, below the imports at the module's head."""
    _, torch = _import_of(source, "torch")
    below = [*head_imports(source)[-1:], *([torch] if torch is not None else [])]
    if below:
        source.insert_line_after(max(below, key=lambda node: node.lineno), "", line)
    else:
        raise NotApplicable("the file has no imports at its head")


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


MODULES = ("Module", "LightningModule")


def is_module_class(source: SourceText, node: ast.ClassDef) -> bool:
    """Whether a class is derived from ``nn.Module``, directly or over classes of this file."""
    names = {dotted(base).rpartition(".")[2] for base in node.bases}
    own = [n for n in source.tree.body if isinstance(n, ast.ClassDef) and n.name in names and n is not node]
    return bool(names & set(MODULES)) or any(n.lineno < node.lineno and is_module_class(source, n) for n in own)


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


def local_names(scope: ast.AST, *, imports: bool = True) -> set[str]:
    """Parameters of a function and names it binds (empty for a module, whose names last)."""
    if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return set()
    arguments = scope.args
    names = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    names |= {a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None}
    outside: set[str] = set()
    for node in ast.walk(scope):
        match node:
            case ast.Global() | ast.Nonlocal():
                outside |= set(node.names)
            case ast.Name(ctx=ast.Store()):
                names.add(node.id)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if node is not scope:
                names.add(node.name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.add(name)
            case ast.Import() | ast.ImportFrom() if imports:
                names |= {(a.asname or a.name).partition(".")[0] for a in node.names}
    return names - outside
