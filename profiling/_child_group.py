"""Lets the script lead its process group as one that was started from a shell does.

Runs in the user's interpreter: standard library only, Python 3.8. The launcher gives it a session of its own, so that
no terminal stops it for reading and all it started can be ended. To make itself the leader of its group, which changes
nothing, is allowed to a leader of a group alone, and forbidden to that of a session.
"""

import os


def lead():
    """Let ``os.setpgrp()`` and ``os.setpgid(0, 0)`` do nothing where there is nothing to do."""
    if not hasattr(os, "setpgid") or os.getsid(0) != os.getpid():
        return
    group_of, alone = os.setpgid, os.setpgrp

    def setpgid(pid, pgrp, /):
        own = os.getpid()
        if not (pid in (0, own) and pgrp in (0, own) and os.getpgrp() == own):
            group_of(pid, pgrp)

    def setpgrp():
        if os.getpgrp() != os.getpid():
            alone()

    for made, original in ((setpgid, group_of), (setpgrp, alone)):
        made.__doc__, made.__module__, made.__qualname__ = original.__doc__, original.__module__, original.__name__
        setattr(os, original.__name__, made)
