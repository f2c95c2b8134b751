"""How often a loop runs that a counter ends: ``if step >= limit: break``, ``while step < limit``; nothing is executed.

Runs in the user's interpreter: standard library only, Python 3.8. What else may end the loop is not known, and one
step more or less depends on where the counter stands: where it is in doubt, the smaller number is taken.
"""

import ast

WORK = ("step", "backward", "training_step", "train_step")  # methods that make a step: what stands below comes after it
WITHIN = (ast.With, ast.AsyncWith, ast.Try, ast.If)
MIRRORED = {ast.Gt: ast.Lt, ast.GtE: ast.LtE, ast.Lt: ast.Gt, ast.LtE: ast.GtE}


def limit_of(loop, number):
    """Runs of the loop, and whether its limit ends the loops around it too; None where no counter limits it.

    Parameters
    ----------
    loop
        The ``for`` or ``while``.
    number
        Function from an expression to its value now, None where that is no known whole number.
    """
    starts = _own_counters(loop, number)
    found, worked = [], False
    if isinstance(loop, ast.While):
        found = [(_until(_opposite(test), loop, starts, number), False) for test in _joined(loop.test)]
    for node in _body(loop):
        if isinstance(node, ast.If) and _leaves(node):
            ends_all = not isinstance(_last(node), ast.Break)
            for test in _joined(node.test):
                runs = _until(test, loop, starts, number)
                own = any(_name(node) in starts for node in ast.walk(test))  # others count before they are asked
                found.append((None if runs is None else runs + (worked and own), ends_all))
        worked = worked or _works(node)
    known = [(max(runs, 1), ends_all) for runs, ends_all in found if runs is not None]
    return min(known) if known else (None, False)


def _own_counters(loop, number):
    """Names that the loop itself counts with, and what they begin with."""
    if isinstance(loop, ast.While):
        return {}
    call, target = loop.iter, loop.target
    while isinstance(call, ast.Call) and _name(call.func) in ("tqdm", "track") and call.args:
        call = call.args[0]
    if not isinstance(call, ast.Call):
        return {}
    if _name(call.func) == "count" and isinstance(target, ast.Name) and len(call.args) < 2 and not call.keywords:
        return {target.id: number(call.args[0]) if call.args else 0}
    if not call.args:
        return {}
    if _name(call.func) == "enumerate" and isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name):
        given = call.args[1:2] + [word.value for word in call.keywords if word.arg == "start"]
        return {target.elts[0].id: number(given[0]) if given else 0}
    if _name(call.func) in ("range", "trange") and isinstance(target, ast.Name) and len(call.args) < 3:
        return {target.id: number(call.args[0]) if len(call.args) == 2 else 0}
    return {}


def _name(node):
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _joined(test):
    """The conditions of which it needs all."""
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def _opposite(test):
    """What ends a loop that runs while this holds."""
    other = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.NotEq: ast.Eq, ast.Gt: ast.LtE, ast.GtE: ast.Lt}
    if not isinstance(test, ast.Compare) or type(test.ops[0]) not in other:
        return None
    return ast.Compare(test.left, [other[type(test.ops[0])]()], test.comparators)


def _until(test, loop, starts, number):
    """Runs until the condition holds, for one that compares a counter with a limit; else None."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    left, kind, right = test.left, type(test.ops[0]), test.comparators[0]
    for counter, way, limit in ((left, kind, right), (right, MIRRORED.get(kind, kind), left)):
        more = 0
        if isinstance(counter, ast.BinOp) and isinstance(counter.op, (ast.Add, ast.Sub)):
            more = number(counter.right)
            if more is None:
                continue
            more, counter = (more if isinstance(counter.op, ast.Add) else -more), counter.left
        if not isinstance(counter, ast.Name) or way not in (ast.Eq, ast.GtE, ast.Gt):
            continue
        if counter.id in starts:
            start = starts[counter.id]
        else:
            start = number(counter) if _counts(loop, counter.id) else None
        end = number(limit)
        if start is not None and end is not None and end >= start:
            return end - more - start + (way is ast.Gt)
    return None


def _counts(loop, name):
    """Whether the loop counts with this name, one by one."""
    return any(
        isinstance(node, ast.AugAssign)
        and isinstance(node.op, ast.Add)
        and _name(node.target) == name
        and isinstance(node.value, ast.Constant)
        and node.value.value == 1
        for node in ast.walk(loop)
    )


def counts_inside(loop, inner):
    """Whether the limit of ``loop`` is counted in a loop within it, which it then ends with."""
    tests = [loop.test] if isinstance(loop, ast.While) else []
    tests += [node.test for node in _body(loop) if isinstance(node, ast.If) and _leaves(node)]
    names = {node.id for test in tests for node in ast.walk(test) if isinstance(node, ast.Name)}
    return any(_counts(inner, name) for name in names)


def _body(loop):
    """Statements of the loop that are not in another loop or function, in order."""
    queue, found = list(loop.body), []
    while queue:
        node = queue.pop(0)
        found.append(node)
        if isinstance(node, WITHIN) and not (isinstance(node, ast.If) and _leaves(node)):
            queue = node.body + queue
    return found


def _last(node):
    return node.body[-1]


def _leaves(node):
    """Whether the branch ends by leaving the loop."""
    return isinstance(_last(node), (ast.Break, ast.Return))


def _works(node):
    """Whether a step is made in this statement, as far as its text tells."""
    return any(
        isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in WORK
        for part in ast.walk(node)
    )
