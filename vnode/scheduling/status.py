"""Statuses that plugins return, in place of exceptions.

The codes and their meaning are those of kube-scheduler. Success is one shared object, because a
cycle makes it thousands of times; every other Status has reasons, and the framework stamps it with
the plugin that returned it, by which the queue decides whether an event may help the pod.
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
    """An error that has nothing to do with the pod, which is retried after a back-off."""
    UNSCHEDULABLE = 2
    """Rejected for now: the target could make room, by preemption or by growing."""
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    """Rejected, and nothing that happens to the pod's candidates in the target changes that."""
    PENDING = 6
    """Filter only: rejected until the plugin learns more. The pod waits for that as it does for
    room, so the node keeps its share in plans."""
    WAIT = 4
    """Permit only: the pod waits until the plugin allows or rejects it."""
    SKIP = 5
    """PreFilter, PreScore: do without this plugin for this pod. Bind: let the next plugin try."""


_REJECTIONS: Final = frozenset(
    {Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING}
)


@dataclass(frozen=True, slots=True)
class Status:
    """An outcome with its reasons; `plugin` is the name of the plugin that returned it."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def is_success(self) -> bool:
        """Whether the code is SUCCESS."""
        return self.code is Code.SUCCESS

    @property
    def is_skip(self) -> bool:
        """Whether the plugin leaves this pod alone."""
        return self.code is Code.SKIP

    @property
    def is_wait(self) -> bool:
        """Whether the pod waits until the plugin allows or rejects it."""
        return self.code is Code.WAIT

    @property
    def is_pending(self) -> bool:
        """Whether a node is rejected only until more is known."""
        return self.code is Code.PENDING

    @property
    def is_rejected(self) -> bool:
        """Whether the pod is rejected, which an error does not do."""
        return self.code in _REJECTIONS

    @property
    def message(self) -> str:
        """All reasons in one line."""
        return ", ".join(self.reasons)

    def with_plugin(self, plugin: str) -> Status:
        """Return the status stamped with its plugin, unless it is; success and SKIP stay shared."""
        if self.plugin or self.code is Code.SUCCESS or self.code is Code.SKIP:
            return self

        return dataclasses.replace(self, plugin=plugin)


SUCCESS: Final = Status(Code.SUCCESS)
SKIP: Final = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """Return a rejection that the target could undo."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Return a rejection that a candidate in the target could not undo."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def pending(*reasons: str) -> Status:
    """Return a rejection until more is known."""
    return Status(Code.PENDING, reasons)


def error(*reasons: str) -> Status:
    """Return an error."""
    return Status(Code.ERROR, reasons)


def wait(*reasons: str) -> Status:
    """Return Permit's request to hold the pod."""
    return Status(Code.WAIT, reasons)
