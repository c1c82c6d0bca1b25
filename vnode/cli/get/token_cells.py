"""Fills the cells of AuthTokenRequests that depend on more than one field. Pure."""

from __future__ import annotations

from datetime import datetime

from vnode.api import objects
from vnode.api.objects import Object
from vnode.insight import status_text, token_standing
from vnode.issuing import request as requests


def target(obj: Object) -> str:
    """Return the cluster that a request names, as kubectl writes objects."""
    cluster = requests.decode(obj).cluster
    return f"{cluster.kind.kind.lower()}/{objects.join_key(cluster.namespace, cluster.name)}"


def account(obj: Object) -> str:
    """Return the service account of the token, as `namespace/name`."""
    return objects.join_key(*requests.decode(obj).account)


def ready(obj: Object, now: datetime) -> str:
    """Return whether there is a token that has not ended; "" before an agent has looked at it."""
    standing = token_standing.read(obj, now)
    return "" if standing.reason == token_standing.UNSEEN else str(standing.is_ready)


def reason(obj: Object, now: datetime) -> str:
    """Return why there is a token, or what the request waits for."""
    standing = token_standing.read(obj, now)
    return "" if standing.reason == token_standing.UNSEEN else standing.reason


def message(obj: Object, now: datetime) -> str:
    """Return the message to the reason."""
    return token_standing.read(obj, now).message


def expires(obj: Object, now: datetime) -> str:
    """Return how long the token is good still."""
    return _until(token_standing.read(obj, now).ends, now, "ended")


def renewal(obj: Object, now: datetime) -> str:
    """Return how long it is to the next renewal."""
    return _until(token_standing.read(obj, now).renew_at, now, "due")


def _until(moment: datetime | None, now: datetime, past: str) -> str:
    if moment is None:
        return ""

    return f"in {status_text.duration(moment - now)}" if moment > now else past
