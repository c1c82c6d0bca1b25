"""Ends a request: its Secret goes at once, its rights when the target answers, then the request."""

from __future__ import annotations

from typing import TypeAlias

from vnode.api import keys, kinds, objects
from vnode.api.errors import NotFound, VnodeError
from vnode.api.objects import Object
from vnode.issuing import revocation, setup, token_secret
from vnode.issuing.attempt import IssuePlace
from vnode.issuing.request import IssueSpec
from vnode.kube.client import Client
from vnode.runtime.expectations import Expectations

IssueFailure: TypeAlias = tuple[str, str]
"""The reason, in one word, and the message of what could not be done."""

_CURE = (
    f"if it never comes back, remove finalizer {keys.ISSUED_TOKEN} of this object: what was "
    "created there stays, and a token is valid until it expires"
)


class RequestEnding:
    """Takes away what a request was given, and lets it go."""

    def __init__(self, local: Client, written: Expectations) -> None:
        self._local = local
        self._written = written

    async def run(
        self, obj: Object, spec: IssueSpec, place: IssuePlace, *, revoked: bool = False
    ) -> IssueFailure | None:
        """End it, or return the reason and message why that has to wait."""
        try:
            await self._delete_secret(obj)
        except VnodeError as error:
            return setup.reason_of(error), f"its Secret is not deleted: {error}"

        if not revoked and (failure := await self.revoke(obj, spec, place)):
            return failure

        await self.let_go(obj)
        return None

    async def revoke(self, obj: Object, spec: IssueSpec, place: IssuePlace) -> IssueFailure | None:
        """Take away what is in the target, or return the reason and message why that has to
        wait."""
        if (link := place.answering) is None:
            why = "does not answer" if place.link else "is not connected"
            reason = "TargetUnreachable" if place.link else "TargetNotFound"
            return reason, f"{spec.cluster} {why}: the permissions there are revoked later; {_CURE}"

        recorded = objects.status(obj).get("clusterUID")
        if recorded and link.cluster_uid and recorded != link.cluster_uid:
            text = (
                f"{spec.cluster} is another cluster now than the one that gave the token; {_CURE}"
            )
            return "OtherCluster", text

        try:
            with link.held():
                await revocation.revoke(link.client, spec)
        except VnodeError as error:
            return setup.reason_of(error), f"{spec.cluster}: {error}; {_CURE}"

        return None

    async def _delete_secret(self, obj: Object) -> None:
        try:
            found = await self._local.get(kinds.SECRETS, objects.name(obj), objects.namespace(obj))
        except NotFound:
            return

        if token_secret.is_of(found, obj):
            await self._local.discard(kinds.SECRETS, found)

    async def let_go(self, obj: Object) -> None:
        """Take our finalizer off a request."""
        left = objects.finalizers_without(obj, keys.ISSUED_TOKEN)
        body = objects.finalizers_patch(obj, left)
        await self._written.patch(self._local, kinds.AUTH_TOKEN_REQUESTS, obj, body)
