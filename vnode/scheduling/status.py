"""What a plugin answers: a Status value, never an exception.

The codes and their meaning are those of kube-scheduler. Success is one shared object, because a
cycle makes it thousands of times; every other Status says why, and the framework stamps on it the
plugin that said so, which is what the queue goes by when an event may help the pod.
"""

from __future__ import annotations

import dataclasses
import enum
from dataclasses import dataclass
from typing import Final


class Code(enum.IntEnum):
    """The outcome of an extension point."""

    SUCCESS = 0
    ERROR = 1
    """Something broke that has nothing to do with the pod: it is retried after a back-off."""
    UNSCHEDULABLE = 2
    """No for now: the target could make room, by preemption or by growing."""
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    """No, and nothing that happens to this pod's candidates in the target could change that."""
    WAIT = 4
    """Permit only: the pod waits until the plugin allows or rejects it."""
    SKIP = 5
    """PreFilter, PreScore: do without this plugin for this pod. Bind: let the next plugin try."""


_REJECTIONS: Final = frozenset({Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE})


@dataclass(frozen=True, slots=True)
class Status:
    """An outcome with its reasons; `plugin` is the name of the plugin that returned it."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def is_success(self) -> bool:
        """The answer is yes."""
        return self.code is Code.SUCCESS

    @property
    def is_skip(self) -> bool:
        """The plugin has nothing to say about this pod."""
        return self.code is Code.SKIP

    @property
    def is_wait(self) -> bool:
        """The pod waits for the plugin's word."""
        return self.code is Code.WAIT

    @property
    def is_rejected(self) -> bool:
        """The answer is no (and not: something broke)."""
        return self.code in _REJECTIONS

    @property
    def message(self) -> str:
        """All reasons in one line."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """The same, stamped with its plugin; success and SKIP stay the shared objects."""
        if self.plugin or self.code is Code.SUCCESS or self.code is Code.SKIP:
            return self

        return dataclasses.replace(self, plugin=plugin)


SUCCESS: Final = Status(Code.SUCCESS)
SKIP: Final = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """A no that the target could turn into a yes."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """A no that a candidate in the target could not change."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def error(*reasons: str) -> Status:
    """Something broke."""
    return Status(Code.ERROR, reasons)


def wait(*reasons: str) -> Status:
    """Permit's "hold it"."""
    return Status(Code.WAIT, reasons)
