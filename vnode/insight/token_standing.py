"""Says of an AuthTokenRequest whether there is a token, and what it waits for. Pure.

`vnode get tokens` and `vnode doctor` show it. It is read from the request's status, which the agent
writes: nobody has to read the Secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.issuing import steps
from vnode.issuing.steps import IssueStep

UNSEEN: Final = "NotReconciled"
"""The reason of a request that no agent has looked at yet."""
REVOKING: Final = "Revoking"
_ENDED: Final = "TokenEnded"
_STEPS: Final = tuple(step.value for step in IssueStep)


@dataclass(frozen=True, slots=True)
class TokenStanding:
    """How a request stands: `is_ready` if its Secret has a token that has not ended.

    `step` is the condition that names the problem, "" if there is none. A token that is ready may
    have a problem nevertheless: it cannot be renewed.
    """

    is_ready: bool
    reason: str
    message: str
    step: str = ""
    ends: datetime | None = None
    renew_at: datetime | None = None


def read(obj: Object, now: datetime) -> TokenStanding:
    """Return how a request stands."""
    status = objects.status(obj)
    ends, renew_at = _moment(status.get("expirationTimestamp")), _moment(status.get("renewAt"))
    revoked = _condition(obj, steps.REVOKED)
    if objects.is_terminating(obj):
        reason = str(revoked.get("reason") or REVOKING)
        step = steps.REVOKED if revoked else ""
        return TokenStanding(False, reason, str(revoked.get("message") or ""), step)

    is_good = ends is not None and now < ends
    for step in _STEPS:
        condition = _condition(obj, step)
        if condition.get("status") == "False":
            reason, message = str(condition.get("reason")), str(condition.get("message"))
            return TokenStanding(is_good, reason, message, step, ends, renew_at)

    if ends is None:
        return TokenStanding(False, UNSEEN, "no agent has carried it out yet", _STEPS[0])

    if not is_good:
        message = f"the token expired at {objects.timestamp(ends)}"
        return TokenStanding(False, _ENDED, message, steps.EXPIRED, ends, renew_at)

    retrieved = _condition(obj, IssueStep.TOKEN.value)
    reason, message = str(retrieved.get("reason") or ""), str(retrieved.get("message") or "")
    return TokenStanding(True, reason, message, "", ends, renew_at)


def _moment(text: str | None) -> datetime | None:
    found = objects.parse_timestamp(str(text or ""))
    return found if found is not None and found.tzinfo else None


def _condition(obj: Object, type_: str) -> Object:
    return objects.condition(obj, type_) or {}
