"""Builds the conditions of an override policy. Pure.

`Accepted` says whether the rules can be used at all, `Applicable` whether they could be applied to
the pods that they were tried on. How often a pod fails does not count.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from vnode.api import status_conditions
from vnode.api.objects import Object, Objects
from vnode.overrides.policy import OverridePolicy

ACCEPTED: Final = "Accepted"
APPLICABLE: Final = "Applicable"
_MESSAGE: Final = 1024  # characters; a policy may have 32 rules, and each its problem


def build(obj: Object, policy: OverridePolicy, failure: str, now: datetime) -> Objects:
    """Build the conditions of a policy; `failure` is what failed for a pod, "" for nothing."""
    accepted: tuple[bool, str, str] = (True, "Valid", "the policy is in force")
    if policy.problem:
        text = f"{policy.problem}; until that is mended, pods that it is for are not sent there"
        accepted = False, "Invalid", _cut(text)

    applicable: tuple[bool, str, str] = True, "NoFailure", "no pod is kept from a target by it"
    if failure:
        applicable = False, "PatchFailed", _cut(failure)

    found = [
        status_conditions.build(obj, ACCEPTED, *accepted, now),
        status_conditions.build(obj, APPLICABLE, *applicable, now),
    ]
    return [*found, status_conditions.ready(obj, found, now)]


def _cut(text: str) -> str:
    return text if len(text) <= _MESSAGE else text[:_MESSAGE] + "..."
