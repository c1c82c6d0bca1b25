"""Finds what was refused on a pod's way, by its Events and by what its target has of it. No I/O.

Each request that is made for a pod may be refused, by an API server, a webhook or a policy of
either cluster, and there is a record of it: a condition, an annotation of its chaperon, an Event.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.insight.collecting import moment
from vnode.insight.facts import Facts, TargetFacts

NOT_SENT: Final = "DelegateRefused"
_REPEATED: Final = ("FeedbackRefused", "ChangeRefused", "RequestRefused", "TokenNotRefreshed")
"""Reasons of Events that come again as long as the request is refused."""
_RECENT: Final = timedelta(minutes=2)
"""For how long such an Event counts: it is tried every 30 s, and written once a minute."""


def of_delegate(facts: Facts, target: TargetFacts) -> str:
    """Return why the pod has no delegate in its target, or that has no node; "" if none says so."""
    for found in (target.delegate, target.chaperon, facts.pod):
        scheduled = objects.condition(found or {}, "PodScheduled") or {}
        if scheduled.get("status") == "False" and not objects.status(found or {}).get("startTime"):
            return str(scheduled.get("message") or scheduled.get("reason") or "no reason given")

        if found is not None:
            return ""  # what is known closer to its node counts

    return ""


def of_sending(facts: Facts) -> str:
    """Return why the pod was not sent to its target; "" if no Event says so."""
    told = [event for event in facts.events if event.get("reason") in (NOT_SENT, "RequestRefused")]
    return str(told[-1].get("message") or "") if told else ""


def of_updates(facts: Facts, target: TargetFacts) -> str:
    """Return what is refused of what goes to and fro while a pod runs; "" for nothing."""
    if refused := objects.annotations(target.chaperon or {}).get(keys.REFUSED):
        what = "its end" if objects.is_terminating(target.chaperon or {}) else "a change"
        return f"target {target.name} refuses {what}: {refused}"

    told = [event for event in facts.events if event.get("reason") in _REPEATED]
    return str(told[-1].get("message") or "") if told and _is_recent(told[-1], facts) else ""


def _is_recent(event: Object, facts: Facts) -> bool:
    last = objects.parse_timestamp(moment(event))
    if last is None:
        return False

    return facts.now - (last if last.tzinfo else last.replace(tzinfo=facts.now.tzinfo)) < _RECENT
