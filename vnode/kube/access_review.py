"""Asks an API server, by a SelfSubjectAccessReview, what the credentials of a client may do."""

from __future__ import annotations

from vnode.api import kinds
from vnode.api.objects import Object
from vnode.kube.client import Client


async def may(client: Client, attributes: Object) -> bool:
    """Tell whether the credentials have a right, by resourceAttributes. Raises what `create` does.

    Whatever a server answers that need not be honest, it is no permission unless it says so.
    """
    review = {"spec": {"resourceAttributes": attributes}}
    status = (await client.create(kinds.SELF_SUBJECT_ACCESS_REVIEWS, review)).get("status")
    return isinstance(status, dict) and status.get("allowed") is True
