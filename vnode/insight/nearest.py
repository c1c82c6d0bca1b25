"""Finds, of what targets say against a pod, what keeps it from the target that it came nearest to.

A target that the pod itself leaves out, by its node selector or affinity or a policy of its
namespace, says nothing of why the pod waits, where another one would do. Nor does one that the plan
of a policy leaves out: what keeps the pod from the planned one does. Pure.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import Final

from vnode.api import enumeration
from vnode.scheduling import diagnosis

_NAMED: Final = 3  # targets in a line


class Nearness(enum.IntEnum):
    """How far a pod came towards a target."""

    LEFT_OUT = 0
    """The pod, or a policy, wants others."""
    NOT_PLANNED = 1
    """A plan wants others."""
    NOT_CONNECTED = 2
    FILTERED = 3
    """It was not asked: something is known to be in the way."""
    SILENT = 4
    """It was asked, and has not answered."""
    ANSWERED = 5
    """It was asked, and says why not."""


_OF_THE_POD: Final = (
    rf"^({diagnosis.LEFT_OUT}|takes only pods of namespace|didn't match \S+$)",
    r"^(cluster)?placementpolicy/\S+: \S+ selects (other|no) clusters$",
    r'^ResourceClaim "[^"]+" is used in target|^the pod came through that cluster',
)
_PATTERNS: Final = (
    (
        Nearness.ANSWERED,
        r"^\d+/\d+ nodes are available|denied the request|is forbidden|failed calling webhook",
    ),
    (Nearness.LEFT_OUT, "|".join(_OF_THE_POD)),
    (
        Nearness.NOT_PLANNED,
        r"^planned elsewhere by|keeps the pods of \S+ together|^the pods of gang \S+ go to target",
    ),
    (Nearness.SILENT, r"^(no answer for|not decided yet)"),
)


_OF_THIS_CLUSTER: Final = r"^namespace \S+ (is being terminated$|does not have the label )"
"""What is said of every target, and is about none of them."""


def of(reason: str, *, is_ready: bool = True) -> Nearness:
    """Return how far the pod came by what is said of a target; `is_ready` is the Target's."""
    found = (near for near, pattern in _PATTERNS if re.search(pattern, reason))
    return next(found, Nearness.FILTERED if is_ready else Nearness.NOT_CONNECTED)


def relevant(reasons: Mapping[str, str], ready: Mapping[str, bool]) -> dict[str, str]:
    """Return the reasons of targets, by name, without those of targets that are left out.

    Those stay if all are. The nearest target comes first.
    """
    nearness = {n: of(text, is_ready=ready.get(n, True)) for n, text in reasons.items()}
    wanted = [n for n in reasons if nearness[n] > Nearness.NOT_PLANNED] or list(reasons)
    return {n: reasons[n] for n in sorted(wanted, key=lambda n: -nearness[n])}


def headline(found: Mapping[str, str]) -> str:
    """Return the first reason of `relevant`, with the targets that give it."""
    first = next(iter(found.values()))
    if re.search(_OF_THIS_CLUSTER, first):
        return first

    names = [name for name, text in found.items() if text == first and name]
    return f"{enumeration.some(names, _NAMED)}: {first}" if names else first
