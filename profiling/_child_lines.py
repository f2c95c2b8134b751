"""Marks the statements of the user's functions with ranges while their modules are imported: the round "find the line".

Runs in the user's interpreter: standard library only, Python 3.8.

A statement ``loss = f(x)`` of line 12 becomes ``with record_function("line: train.py:12 (step)"): loss = f(x)``. What
the code means stays the same: line numbers, closures, decorators, name mangling and tracebacks are those of the
source. What cannot be wrapped is left as it is and told.
"""

import ast
import builtins
import fnmatch
import functools
import importlib.machinery
import io
import os
import sys

NAME = "__steplens_range__"  # found among the builtins, so that nothing is added to the user's modules
COMPILERS = ("jit", "njit", "script", "compile", "triton", "numba", "cuda", "autotune", "custom_op")
FLAG = "_steplens_test_%d"
# SystemError: CPython, where another thread parses meanwhile; the two before: code nested too deeply.
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError, SystemError)


class NoRange:
    """What a range is before torch is there."""

    def __init__(self, name):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        return None


class Ranges:
    """Transforms sources.

    Parameters
    ----------
    patterns
        ``*``, or ``file:function`` with the end of a path and a qualified name; either may hold wildcards.
    is_users
        Function from a file name to its absolute path where it is the user's code, else an empty string.
    """

    def __init__(self, patterns, is_users):
        self._patterns = [p if ":" in p else p + ":*" for p in patterns]
        self._is_users = is_users
        self.files = {}  # base name -> absolute path
        self.statements = 0
        self.functions = 0
        self.skipped = []  # {file, line, function, why}
        self._real = None  # the class of the ranges, once torch is there
        self._recording = self._resting = False
        self.compiles = False  # torch.compile is used: what the code calls must stay the same

    def install(self):
        """Take part in imports."""
        setattr(builtins, NAME, NoRange)
        sys.meta_path.insert(0, _Finder(self))

    def on_torch(self, torch):
        """From now on the ranges are real while a profiler runs, ours or the script's.

        torch's class in C leaves no Python frames of its own and costs a fraction of ``record_function``, but
        ``torch.compile`` cannot look through it: where that is called, ``record_function`` takes its place. And a range
        of it that was entered before the profiler started must not be left while it runs: torch takes that for a fault.
        """
        slow = torch.autograd.profiler.record_function
        self._real = getattr(getattr(torch._C, "_profiler", None), "_RecordFunctionFast", slow)
        self._follow(torch.autograd.profiler.profile)
        self._choose()
        original = getattr(torch, "compile", None)
        if original is None or self._real is slow:
            return

        @functools.wraps(original)
        def compile(*args, **kwargs):
            self.compiles, self._real = True, slow
            self._choose()
            return original(*args, **kwargs)

        torch.compile = compile

    def _follow(self, profile_class):
        """Learn when a profiler starts and stops."""
        start, leave = profile_class._start_trace, profile_class.__exit__

        @functools.wraps(start)
        def _start_trace(profile, *args):
            result = start(profile, *args)
            self._recording = True
            self._choose()
            return result

        @functools.wraps(leave)
        def __exit__(profile, *args):
            self._recording = False
            self._choose()
            return leave(profile, *args)

        profile_class._start_trace, profile_class.__exit__ = _start_trace, __exit__

    def rest(self):
        """Mark nothing for a while, to learn what the marks cost; returns whether that is possible."""
        if self._real is None or self.compiles:
            return False
        self._resting = True
        self._choose()
        return True

    def wake(self):
        """Mark again."""
        self._resting = False
        self._choose()

    def _choose(self):
        """Put the ranges due where the marked code finds them, else a context manager in C, next to nothing."""
        wanted = self.compiles or self._recording and not self._resting
        setattr(builtins, NAME, self._real if wanted else io.StringIO)

    def wants_file(self, path):
        """Whether any pattern names this file."""
        return bool(path) and any(_fits_file(path, p.rpartition(":")[0]) for p in self._patterns)

    def wants(self, path, function):
        """Whether any pattern names this function."""
        last = function.rpartition(".")[2]
        for pattern in self._patterns:
            file, _, name = pattern.rpartition(":")
            if _fits_file(path, file) and (fnmatch.fnmatchcase(function, name) or last == name):
                return True
        return False

    def transform(self, source, path):
        """Syntax tree with ranges; None where nothing is to be marked (or the source does not parse)."""
        if not self.wants_file(self._is_users(path)):
            return None
        try:
            tree = ast.parse(source, path)
        except _UNREADABLE:
            return None
        before = self.statements
        self.files[os.path.basename(path)] = os.path.abspath(path)
        try:
            _Marker(self, path).visit(tree)
            return ast.fix_missing_locations(tree) if self.statements > before else None
        except RecursionError:  # nested more deeply than can be walked through: it runs as it is
            self.statements = before
            return None

    def summary(self):
        """What was done, for the manifest."""
        return {
            "statements": self.statements, "functions": self.functions, "files": self.files,
            "skipped": self.skipped[:500],
        }  # fmt: skip


def _fits_file(path, pattern):
    if pattern in ("", "*"):
        return True
    pattern = pattern.replace("\\", "/")
    path = path.replace("\\", "/")
    return fnmatch.fnmatchcase(path, "*/" + pattern) or fnmatch.fnmatchcase(path, pattern)


class _Marker(ast.NodeTransformer):
    """Walks a module; only the bodies of wanted functions change."""

    def __init__(self, ranges, path):
        self._ranges, self._path = ranges, path
        self._names = []  # of the classes and functions about the node
        self._flags = 0

    def visit_Module(self, node):
        if self._ranges.wants(self._path, "<module>"):
            self._ranges.functions += 1
            node.body = self._body(node.body, "<module>")
        else:
            self.generic_visit(node)
        return node

    def visit_ClassDef(self, node):
        self._names.append(node.name)
        self.generic_visit(node)
        self._names.pop()
        return node

    def visit_FunctionDef(self, node):
        self._names.append(node.name)
        function = ".".join(self._names)
        if self._ranges.wants(self._path, function):
            why = _compiled(node)
            if why:
                self._skip(node, function, why)
            else:
                self._ranges.functions += 1
                node.body = self._body(node.body, function)
        else:
            self.generic_visit(node)
        self._names.pop()
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def _skip(self, node, function, why):
        row = {"file": self._path, "line": node.lineno, "function": function, "why": why}
        self._ranges.skipped.append(row)

    def _body(self, statements, function):
        done = []
        for index, statement in enumerate(statements):
            if index == 0 and _is_text(statement):
                done.append(statement)  # the docstring
            else:
                done.extend(self._statement(statement, function))
        return done

    def _statement(self, node, function):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return [self.visit(node)]
        if isinstance(node, ast.If):
            return self._if(node, function)
        if isinstance(node, ast.While):
            return self._while(node, function)
        if hasattr(node, "body") or hasattr(node, "cases"):
            return [self._inside(node, function)]
        if isinstance(node, (ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom)):
            return [node]
        if isinstance(node, (ast.Return, ast.AnnAssign)) and node.value is None:
            return [node]
        if _suspends(node):
            self._skip(node, function, "yields or awaits")
            return [node]
        return [self._with(node, function)]

    def _inside(self, node, function):
        """A loop, ``with``, ``try`` or ``match``: its header stays, what is in it is marked."""
        for field in ("body", "orelse", "finalbody"):
            if getattr(node, field, None):
                setattr(node, field, self._body(getattr(node, field), function))
        for part in getattr(node, "handlers", []) + getattr(node, "cases", []):
            part.body = self._body(part.body, function)
        return node

    def _if(self, node, function):
        """The test is worked out in a range of its own: ``if tensor:`` waits for the device."""
        if _suspends(node.test) or _is_constant(node.test):
            return [self._inside(node, function)]
        test, flag = self._test(node, function)
        self._inside(node, function)
        node.test = flag
        return [test, node]

    def _while(self, node, function):
        if node.orelse or _suspends(node.test) or _is_constant(node.test):
            return [self._inside(node, function)]
        test, flag = self._test(node, function)
        self._inside(node, function)
        leave = ast.If(test=ast.UnaryOp(op=ast.Not(), operand=flag), body=[ast.Break()], orelse=[])
        node.body = [test, leave] + node.body
        node.test = ast.Constant(value=True)
        for made in ast.walk(leave):
            ast.copy_location(made, node)
        return [node]

    def _test(self, node, function):
        self._flags += 1
        name = FLAG % self._flags
        value = ast.IfExp(test=node.test, body=ast.Constant(value=True), orelse=ast.Constant(value=False))
        assign = ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=value, lineno=node.lineno)
        for made in (assign, assign.targets[0], value, value.body, value.orelse):
            ast.copy_location(made, node.test)
        return self._with(assign, function), ast.copy_location(ast.Name(id=name, ctx=ast.Load()), node.test)

    def _with(self, node, function):
        self._ranges.statements += 1
        words = "line: %s:%d (%s)" % (os.path.basename(self._path), node.lineno, function)
        words = words.encode("ascii", "replace").decode().replace('"', "'").replace("\\", "/")
        call = ast.Call(func=ast.Name(id=NAME, ctx=ast.Load()), args=[ast.Constant(value=words)], keywords=[])
        made = ast.With(items=[ast.withitem(context_expr=call, optional_vars=None)], body=[node])
        for part in (made, call, call.func, call.args[0]):
            ast.copy_location(part, node)
        return made


def _is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_constant(node):
    return isinstance(node, ast.Constant)


def _suspends(node):
    """Whether control leaves the function in the middle: a range would then cross others."""
    stack = [node]
    while stack:
        found = stack.pop()
        if isinstance(found, (ast.Yield, ast.YieldFrom, ast.Await)):
            return True
        if isinstance(found, ast.comprehension) and found.is_async:
            return True
        if not isinstance(found, (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(found))
    return False


def _compiled(node):
    """Why a function is left alone: a compiler reads it; an empty string where none does."""
    for decorator in node.decorator_list:
        names = {n.attr for n in ast.walk(decorator) if isinstance(n, ast.Attribute)}
        names |= {n.id for n in ast.walk(decorator) if isinstance(n, ast.Name)}
        found = sorted(names.intersection(COMPILERS))
        if found:
            return "compiled by its decorator (%s)" % ", ".join(found)
    return ""


class _Finder:
    """Gives the user's modules a loader that marks their statements."""

    def __init__(self, ranges):
        self._ranges = ranges

    def find_spec(self, name, path=None, target=None):
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec") or type(finder).__name__ == "_ImportWatch":
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                self._adapt(spec)
                return spec
        return None

    def _adapt(self, spec):
        loader = spec.loader
        ordinary = type(loader) is importlib.machinery.SourceFileLoader
        if ordinary and self._ranges.wants_file(self._ranges._is_users(spec.origin or "")):
            spec.loader = _Loader(self._ranges, loader.name, loader.path)


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles the marked source; bytecode files are neither read nor written."""

    def __init__(self, ranges, name, path):
        super().__init__(name, path)
        self._ranges = ranges

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        tree = self._ranges.transform(self.get_data(path), path)
        if tree is None:
            return super().get_code(fullname)
        return compile(tree, path, "exec", dont_inherit=True)
