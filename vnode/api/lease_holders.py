"""Says who holds a Lease, as another machine sees it. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from vnode.api import durations, objects
from vnode.api.objects import Object

SLACK: Final = timedelta(seconds=15)
"""By which a lease may be overdue: clocks differ, and a leader may change."""


def live_holder(lease: Object, now: datetime) -> str:
    """Return who holds a lease; "" if nobody does any more."""
    spec = objects.spec(lease)
    renewed = objects.parse_timestamp(str(spec.get("renewTime") or ""))
    life = durations.span(int(spec.get("leaseDurationSeconds") or 0)) + SLACK
    is_alive = renewed is not None and now - renewed < life
    return str(spec.get("holderIdentity") or "") if is_alive else ""
