"""How many steps the user's loop will make, read from its source and the values it runs over; nothing is executed.

Runs in the user's interpreter: standard library only, Python 3.8.
"""

import ast
import operator

LARGEST_SOURCE_CHARS = 200_000  # parsing more would cost more than it can save
MOST_FRAMES = 60
SAME = ("enumerate", "tqdm", "track", "reversed", "sorted", "list", "iter", "tuple")  # as long as their argument
RANGES = ("range", "trange")
OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
}  # fmt: skip


def steps_foreseen(frame, is_users, loader_class, limits):
    """Product of the lengths of all loops that the user's code is in; None where one of them is unknown, or none is.

    Parameters
    ----------
    frame
        The innermost frame to look at; its callers follow.
    is_users
        Function from a file name to its absolute path where it is the user's code, else an empty string.
    loader_class
        Class of the loaders whose length may be asked for.
    limits
        The module that reads what ends a loop before its time.
    """
    total, loops = 1, 0
    asked = None  # the loader's iterator that a loop of the user's is asking for a batch
    for _ in range(MOST_FRAMES):
        if frame is None:
            break
        if is_users(frame.f_code.co_filename):
            lengths = _lengths(_loops_about(frame), frame, loader_class, limits, asked)
            if None in lengths:
                return None
            for length in lengths:
                total, loops = total * length, loops + 1
            asked = None
        elif asked is None:
            asked = _batches(frame.f_locals.get("self"))
        frame = frame.f_back
    return total if loops else None


def _lengths(found, frame, loader_class, limits, asked):
    """How often each of the loops runs, from the inside out; None for one that nothing tells of.

    ``asked``: the length of the loader that the innermost one asks for a batch, None where it does not.
    """
    lengths, inner, ended = [], None, False
    for loop in reversed(found):
        length = None if isinstance(loop, ast.While) else _length(loop.iter, frame, loader_class)
        if length is None and inner is None and _asks(loop, frame):
            length = asked  # a loader made in the loop's own line, say
        limit, ends_all = limits.limit_of(loop, lambda node: _number(node, frame, loader_class))
        if limit is not None and (length is None or limit <= length):
            length = limit
        else:
            ends_all = False
        if ended or inner is not None and limits.counts_inside(loop, inner):
            length = 1
        lengths.append(length)
        inner, ended = loop, ended or ends_all
    return lengths


def _asks(loop, frame):
    """Whether the line being run is the head of the loop, which gets its next value."""
    return isinstance(loop, ast.For) and loop.lineno <= frame.f_lineno <= loop.iter.end_lineno


def _batches(iterator):
    """Batches in all that a loader's iterator gives; None where it is no such thing, or does not know."""
    if not any(kind.__name__ == "_BaseDataLoaderIter" for kind in type(iterator).__mro__):
        return None
    try:
        return len(iterator._index_sampler)
    except Exception:  # an iterable data set: nobody knows
        return None


def _loops_about(frame):
    """Loops of the frame's own function that the line being run lies in, from the outside in."""
    tree = _tree_of(frame.f_code.co_filename)
    if tree is None:
        return []
    scope = tree if frame.f_code.co_name == "<module>" else _function_of(tree, frame.f_code)
    return _around(scope, frame.f_lineno) if scope is not None else []


def _tree_of(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            source = handle.read(LARGEST_SOURCE_CHARS + 1)
        return ast.parse(source) if len(source) <= LARGEST_SOURCE_CHARS else None
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        return None


def _function_of(tree, code):
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
            first = min([node.lineno] + [d.lineno for d in node.decorator_list])
            if first == code.co_firstlineno:
                return node
    return None


def _around(scope, line):
    found, queue = [], list(scope.body)
    while queue:
        node = queue.pop()
        last = getattr(node, "end_lineno", None)
        if last is None or not node.lineno <= line <= last:
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue  # another scope; its frame is looked at by itself
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            found.append(node)
        queue = list(ast.iter_child_nodes(node)) + queue
    return found


def _length(node, frame, loader_class):
    """How often a loop over this expression runs; None where only running it would tell."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return None if any(isinstance(e, ast.Starred) for e in node.elts) else len(node.elts)
    if isinstance(node, ast.Call) and node.args and not any(isinstance(a, ast.Starred) for a in node.args):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in RANGES:
            numbers = [_number(a, frame, loader_class) for a in node.args]
            whole = all(type(n) is int for n in numbers) and len(numbers) <= 3 and 0 not in numbers[2:]
            return len(range(*numbers)) if whole else None
        if name in SAME:
            return _length(node.args[0], frame, loader_class)
        if name == "islice" and 2 <= len(node.args) <= 3:
            ends = [_number(a, frame, loader_class) for a in node.args[1:]]
            length = _length(node.args[0], frame, loader_class)
            return None if None in ends else len(range(*ends)[:length])
        if name == "zip":
            lengths = [_length(a, frame, loader_class) for a in node.args]
            return None if None in lengths else min(lengths)
        return None
    return _length_of_value(_value(node, frame), loader_class)


def _length_of_value(value, loader_class):
    if type(value) in (list, tuple, dict, set, range, str):
        return len(value)
    inside = getattr(value, "__dict__", None)
    if loader_class and isinstance(value, loader_class):
        try:
            return len(value._index_sampler)
        except Exception:  # an iterable data set: nobody knows
            return None
    if type(value).__name__.startswith("tqdm") and isinstance(inside, dict):  # a progress bar made before the loop
        return inside.get("total") if type(inside.get("total")) is int else None
    return None


def _number(node, frame, loader_class):
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        left, right = (_number(side, frame, loader_class) for side in (node.left, node.right))
        if type(left) is not int or type(right) is not int:
            return None
        if isinstance(node.op, ast.FloorDiv) and right == 0:
            return None
        return OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand, frame, loader_class)
        return -inner if type(inner) is int else None
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "len" and len(node.args) == 1:
        return _length(node.args[0], frame, loader_class)
    value = node.value if isinstance(node, ast.Constant) else _value(node, frame)
    return value if type(value) is int else None


def _value(node, frame):
    """What a name or a chain of attributes stands for; only what lies in plain dictionaries is looked at."""
    if isinstance(node, ast.Name):
        for names in (frame.f_locals, frame.f_globals):
            if node.id in names:
                return names[node.id]
        return None
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, frame)
        inside = getattr(owner, "__dict__", None) if owner is not None else None
        return inside.get(node.attr) if isinstance(inside, dict) else None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is str:
        owner = _value(node.value, frame)
        return owner.get(node.slice.value) if type(owner) is dict else None
    return None
