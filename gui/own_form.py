"""What the user has filled in to start a run, kept while the form shows a run of the example."""

from __future__ import annotations

from dataclasses import dataclass

from profiling.spec import RunSpec

STAND_IN = "-"  # for a script: a spec has exactly one target, a form may have none or two


@dataclass(frozen=True)
class OwnForm:
    """A form as it was left; ``rest`` is all but the texts, and is not for running."""

    rest: RunSpec
    script: str
    module: str
    arguments: str
    as_module: bool
    picked: bool  # the user chose the interpreter

    @property
    def is_filled(self) -> bool:
        """Whether the user had filled in anything that is worth coming back to."""
        return self.picked or any(text.strip() for text in (self.script, self.module, self.arguments))
