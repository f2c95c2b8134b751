"""A source text, its syntax tree, and edits to the text by place in the tree.

Edits are splices of the text, so formatting and comments elsewhere stay as they are to the last character.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from core import syntax

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While


class NotApplicable(Exception):
    """The text is not of a form that a rewrite can change safely; nothing is proposed."""


@dataclass(frozen=True)
class Place:
    """Where a suggestion points: ``line`` 0 and ``function`` "" when it has no source."""

    function: str = ""
    line: int = 0
    exact: bool = False
    candidates: tuple[int, ...] = ()

    def touches(self, node: ast.stmt | ast.expr) -> bool:
        """Whether a node lies on the line found, or on one of its candidates."""
        end = node.end_lineno or node.lineno
        return any(node.lineno <= line <= end for line in (self.line, *self.candidates))


class SourceText:
    """One module's text.

    Parameters
    ----------
    text
        The source, with its own line ends.

    Raises
    ------
    NotApplicable
        When it is not valid Python.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.newline = "\r\n" if 2 * text.count("\r\n") > text.count("\n") else "\n"  # as most of its lines
        if "\r" in text.replace("\r\n", ""):
            raise NotApplicable("the file has line ends of another kind")
        try:
            self.tree = syntax.module(text.replace("\r\n", "\n"))
        except (SyntaxError, ValueError, RecursionError) as error:
            version = ".".join(map(str, sys.version_info[:2]))
            raise NotApplicable(f"the file is not valid for Python {version}: {error}") from error
        self.lines = text.split("\n")
        self._offsets = [0]
        for line in self.lines:
            self._offsets.append(self._offsets[-1] + len(line) + 1)
        self._parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}
        self._edits: list[tuple[int, int, str]] = []
        self.added_imports: set[str] = set()

    # Places in the text --------------------------------------------------------------------------------------

    def _at(self, line: int, column_bytes: int) -> int:
        text = self.lines[line - 1]
        column = column_bytes if text.isascii() else len(text.encode()[:column_bytes].decode())
        return self._offsets[line - 1] + column

    def span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        """Start and end offset of a node in the text."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def of(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        """Text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def indent(self, node: ast.stmt) -> str:
        """White space before a statement; it must be the first on its line."""
        before = self.lines[node.lineno - 1][: self._at(node.lineno, node.col_offset) - self._offsets[node.lineno - 1]]
        if before.strip():
            raise NotApplicable("several statements share a line")
        return before.rpartition("\f")[2]

    # Tree ----------------------------------------------------------------------------------------------------

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Node above."""
        return self._parents.get(node)

    def parents(self, node: ast.AST) -> Iterator[ast.AST]:
        """All nodes above, innermost first."""
        above = self._parents.get(node)
        while above is not None:
            yield above
            above = self._parents.get(above)

    def statement(self, node: ast.AST) -> ast.stmt:
        """Innermost statement that holds a node."""
        for above in (node, *self.parents(node)):
            if isinstance(above, ast.stmt):
                return above
        raise NotApplicable("no statement")

    def function_of(self, node: ast.AST) -> FunctionNode | None:
        """Innermost function around a node."""
        return next((n for n in self.parents(node) if isinstance(n, FunctionNode)), None)

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """Class whose method holds a node."""
        for above in self.parents(node):
            if isinstance(above, ast.ClassDef):
                return above
        return None

    def loop_of(self, node: ast.AST) -> Loop | None:
        """Innermost loop around a node, inside its own function."""
        for above in self.parents(node):
            if isinstance(above, Loop):
                return above
            if isinstance(above, FunctionNode | ast.Lambda):
                return None
        return None

    def scope(self, place: Place) -> ast.AST:
        """The function that a place names (the module for code outside functions, or without a place)."""
        name = place.function.rpartition(".")[2]
        if not name or name.startswith("<"):
            return self.tree
        found = [
            n
            for n in ast.walk(self.tree)
            if isinstance(n, FunctionNode) and n.name == name and _start(n) <= place.line <= (n.end_lineno or 0)
        ]
        if not found:
            raise NotApplicable(f"there is no function {name} at line {place.line}")
        return min(found, key=lambda n: (n.end_lineno or 0) - n.lineno)

    def block_of(self, statement: ast.stmt) -> list[ast.stmt]:
        """The list of statements that a statement is in."""
        above = self.parent(statement)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(above, name, None)
            if isinstance(block, list) and statement in block:
                return block
        raise NotApplicable("no block")

    # Edits ---------------------------------------------------------------------------------------------------

    def replace(self, node: ast.expr | ast.stmt | ast.keyword, text: str) -> None:
        """Put other text in place of a node."""
        if any(isinstance(n, ast.JoinedStr) for n in self.parents(node)):
            raise NotApplicable("the code is inside an f-string")  # places in those are not exact before Python 3.12
        self._edits.append((*self.span(node), text))

    def rename(self, parameter: ast.arg, name: str) -> None:
        """Give a parameter another name; its annotation stays."""
        start = self._at(parameter.lineno, parameter.col_offset)
        self._edits.append((start, start + len(parameter.arg), name))

    def insert_argument(self, last: ast.expr | ast.keyword, line: str) -> None:
        """Put an argument on a line of its own behind the last one, below a comment that stands beside that."""
        at = self._behind(last)
        end = self.text.find("\n", at)
        rest = self.text[at:end].strip() if end >= 0 else ""
        if rest.startswith(",") and rest[1:].strip().startswith("#"):
            self._edits.append((end + 1, end + 1, f"{line},{self.newline}"))
        elif rest.startswith("#"):
            if (at, at, ",") not in self._edits:
                self._edits.append((at, at, ","))
            self._edits.append((end + 1, end + 1, f"{line},{self.newline}"))
        else:
            self._edits.append((at, at, f",{self.newline}{line}"))

    def insert_after(self, node: ast.expr | ast.keyword, text: str) -> None:
        """Put text right behind a node, and behind the parentheses around it."""
        at = self._behind(node)
        self._edits.append((at, at, text))

    def _behind(self, node: ast.expr | ast.keyword) -> int:
        """Offset behind a node and the parentheses around it."""
        at = self.span(node)[1]
        value = node.value if isinstance(node, ast.keyword) else node
        rest = self.text[at:]
        opened = self._open_parentheses(value)
        while opened and rest.lstrip().startswith(")"):
            at += len(rest) - len(rest.lstrip()) + 1
            rest, opened = self.text[at:], opened - 1
        return at

    def _open_parentheses(self, node: ast.expr) -> int:
        """Parentheses that stand right before a node and belong to it alone (not to a call)."""
        before, count = self.text[: self.span(node)[0]].rstrip(), 0
        while before.endswith("("):
            before = before[:-1].rstrip()
            if before[-1:].isalnum() or before[-1:] in ("_", ")", "]"):
                break
            count += 1
        return count

    def replace_tail(self, node: ast.expr, count: int, text: str) -> None:
        """Put other text in place of the last characters of a node."""
        end = self.span(node)[1]
        self._edits.append((end - count, end, text))

    def insert_line_before(self, statement: ast.stmt, *lines: str, over_comments: bool = False) -> None:
        """Insert lines, indented as the statement is, above it (above its decorators, and its comments if asked)."""
        indent = self.indent(statement)
        line = _start(statement)
        while over_comments and line > 1 and self.lines[line - 2].strip().startswith("#"):
            line -= 1
        at = self._offsets[line - 1]
        self._edits.append(
            (at, at, "".join(f"{indent}{line}{self.newline}" if line else self.newline for line in lines))
        )

    def insert_line_after(self, statement: ast.stmt, *lines: str) -> None:
        """Insert lines, indented as the statement is, below it; it must be the last on its line."""
        indent = self.indent(statement)
        self._check_alone(statement)
        last = statement.end_lineno or statement.lineno
        at = min(self._offsets[last], len(self.text))
        text = "".join(f"{indent}{line}{self.newline}" if line else self.newline for line in lines)
        if not self.text[:at].endswith("\n"):  # last line of a file without a line end
            text = self.newline + text.removesuffix(self.newline)
        self._edits.append((at, at, text))

    def delete(self, statement: ast.stmt) -> None:
        """Delete a statement with its line; a block is never left empty."""
        indent = self.indent(statement)
        self._check_alone(statement)
        start, end = self._offsets[statement.lineno - 1], self._offsets[statement.end_lineno or statement.lineno]
        alone = len(self.block_of(statement)) == 1
        self._edits.append((start, min(end, len(self.text)), f"{indent}pass{self.newline}" if alone else ""))

    def delete_decorator(self, decorator: ast.expr) -> None:
        """Delete the lines of a decorator."""
        first, last = decorator.lineno, decorator.end_lineno or decorator.lineno
        start, end = self.span(decorator)
        before, rest = self.text[self._offsets[first - 1] : start], self.text[end : self._offsets[last]].strip()
        if before.strip() != "@" or (rest and not rest.startswith("#")):
            raise NotApplicable("the decorator shares its line")
        self._edits.append((self._offsets[first - 1], self._offsets[last], ""))

    def indent_step(self) -> str:
        """What the file indents a block by: that of its first block; four spaces without any."""
        for node in ast.walk(self.tree):
            inner = getattr(node, "body", None)
            if isinstance(node, ast.stmt) and isinstance(inner, list) and inner[0].lineno > node.lineno:
                outside, inside = (
                    self.lines[n.lineno - 1][: len(self.lines[n.lineno - 1]) - len(self.lines[n.lineno - 1].lstrip())]
                    for n in (node, inner[0])
                )
                if inside.startswith(outside) and inside != outside:
                    return inside.removeprefix(outside)
        return "    "

    def indent_more(self, first: ast.stmt, last: ast.stmt) -> None:
        """Indent the lines from one statement to another by one step more."""
        step = self.indent_step()
        self._check_alone(last)
        inside_text = self._lines_inside_strings(first, last)
        for line in range(first.lineno, (last.end_lineno or last.lineno) + 1):
            if self.lines[line - 1].strip() and line not in inside_text:
                at = self._offsets[line - 1]
                self._edits.append((at, at, step))

    def _lines_inside_strings(self, first: ast.stmt, last: ast.stmt) -> set[int]:
        inside: set[int] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Constant | ast.JoinedStr) and first.lineno <= node.lineno <= (last.end_lineno or 0):
                inside.update(range(node.lineno + 1, (node.end_lineno or node.lineno) + 1))
        return inside

    def comment_behind(self, statement: ast.stmt) -> str:
        """The comment beside a statement, with the space before it; "" where there is none."""
        end = self.span(statement)[1]
        rest = self.text[end : self._offsets[statement.end_lineno or statement.lineno]].rstrip()
        return rest if rest.strip().startswith("#") else ""

    def _check_alone(self, statement: ast.stmt) -> None:
        rest = self.text[self.span(statement)[1] : self._offsets[statement.end_lineno or statement.lineno]].strip()
        if rest and not rest.startswith("#"):
            raise NotApplicable("several statements share a line")

    @property
    def edited(self) -> bool:
        """Something was edited."""
        return bool(self._edits)

    def result(self) -> str:
        """Return the text with all edits.

        Raises
        ------
        NotApplicable
            When edits overlap, or the outcome is no valid Python.
        """
        text, end = [], len(self.text)
        order = sorted(enumerate(self._edits), key=lambda e: (e[1][0], e[1][1], e[0]), reverse=True)
        for _, (start, stop, new) in order:
            if stop > end:
                raise NotApplicable("two edits overlap")
            text += [self.text[stop:end], new]
            end = start
        text.append(self.text[:end])
        out = "".join(reversed(text))
        try:
            compile(out, "<proposed>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            raise NotApplicable(f"the edit would not compile: {error}") from error
        return out


def _start(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def dotted(node: ast.AST | None) -> str:
    """``a.b.c`` of a name or attribute, "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


def calls(scope: ast.AST) -> Iterator[ast.Call]:
    """All calls below a node, in source order."""
    found = [n for n in ast.walk(scope) if isinstance(n, ast.Call)]
    yield from sorted(found, key=lambda n: (n.lineno, n.col_offset))


def names_read(node: ast.AST) -> set[str]:
    """Names that an expression or statement reads."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def names_written(node: ast.AST) -> set[str]:
    """Names that a statement binds."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def same(a: ast.AST, b: ast.AST) -> bool:
    """Whether two nodes are the same code."""
    return ast.dump(a) == ast.dump(b)


def shared_names(node: ast.AST) -> set[str]:
    """Names and attributes (``self.x``) that something below a node binds or adds to."""
    return {
        dotted(n) for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Store)
    }


def bracketed(source: SourceText, node: ast.expr) -> str:
    """Text of an expression that something can be put behind."""
    text = source.of(node)
    return text if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript) else f"({text})"
