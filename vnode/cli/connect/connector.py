"""Runs the steps of `vnode connect`, with two clients and a `DesiredConnection`.

Each step changes only what differs from that, so `vnode connect` can be run any number of times.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Final

from vnode.api import account_users, keys, kinds, objects
from vnode.api.errors import AlreadyExists, ApiError, ConfigError, Denied
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.cli import identity, kubeconfigs
from vnode.cli.connect import desired, grants, lookup, renewal_rights
from vnode.cli.connect.desired import DesiredConnection
from vnode.cli.connect.lookup import find
from vnode.kube import account_tokens
from vnode.kube.client import Client
from vnode.targets import cluster_identity, source_rbac

MANAGER: Final = "vnode-connect"


class Connector:
    """Connects the source to the target."""

    def __init__(
        self,
        source: Client,
        target: Client,
        connection: DesiredConnection,
        report: Callable[[str], None],
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._source = source
        self._target = target
        self._connection = connection
        self._report = report
        self._now = now

    async def run(self) -> None:
        """Run all steps; each reports its result, one line at a time."""
        own_uid = await identity.cluster_uid(self._source)
        other_uid = await identity.cluster_uid(self._target)
        is_self = own_uid == other_uid != ""
        present = await lookup.target(self._source, self._connection, is_self=is_self)
        confirmed = self.confirmation(present, other_uid)
        kind = self._connection.target_kind
        if is_self:
            await self._apply(
                self._source, kind, desired.self_target_object(self._connection), "source"
            )
            self._report(desired.IS_SELF.format(name=self._connection.name))
            return

        source = await self._make_source(own_uid)
        account = await self._make_account(source)
        renewal = self._connection.renewal
        if renewal:
            await self._grant(self._target, renewal_rights.in_target, source, "target")

        secret = await self._make_secret(account)
        if renewal:
            await self._grant(self._source, renewal_rights.in_source, secret, "source")

        target = desired.target_object(self._connection, confirmed)
        await self._apply(self._source, kind, target, "source")
        self._warn()

    def _warn(self) -> None:
        endpoint = self._connection.endpoint
        if endpoint.is_local:
            self._report(
                f"Warning: the source's agent will call {endpoint.server}, which is itself unless "
                "it runs on this machine: pass --server with an address that it can reach."
            )

        if endpoint.insecure:
            self._report(
                "Warning: the target's kubeconfig skips the check of its certificate, and so will "
                "the source's agent: give it a certificate-authority, and connect again."
            )

    def confirmation(self, present: Object | None, uid: str) -> str:
        """Return the UID with which the Target's annotation confirms another cluster, "" if none.

        Raises ConfigError without --confirm-cluster, lest a wrong kubeconfig should replace pods.
        """
        before = cluster_identity.recorded(present or {})
        if not before or not uid or uid == before:
            return ""

        if not self._connection.confirmed:
            raise ConfigError(
                f"the source has a {self._connection.target_kind.kind} {self._connection.name!r} "
                f"that is another cluster ({before} is the UID of its namespace kube-system, and "
                f"{uid} that of this target): choose another --name, or run vnode disconnect "
                "first, or pass --confirm-cluster. With that, this cluster takes its place: pods "
                "that were sent are replaced, and their delegate pods in the former cluster keep "
                "running until a Target leads there"
            )

        return uid

    async def _make_source(self, own_uid: str) -> Object:
        connection, kind = self._connection, self._connection.source_kind
        present = await find(self._target, kind, connection.cluster_name, connection.namespace)
        owner = objects.annotations(present or {}).get(keys.PARENT_CLUSTER_UID, own_uid)
        own_uid = own_uid or owner
        if owner != own_uid:
            raise ConfigError(
                f"the target has a {kind.kind} {connection.cluster_name!r} for another source "
                "cluster: their names must be unique, pass another --cluster-name (and give the "
                "source's agent the same)"
            )

        if present is None:
            await lookup.check_account(self._target, connection.home, connection.cluster_name)

        selector = connection.selector_of(present)
        wanted = desired.source_object(connection, own_uid, selector)
        if selector is not None:
            await self._check_selector(kind, wanted)

        made = await self._apply(self._target, kind, wanted, "target")
        if not connection.namespace:
            self._report(grants.told(selector))

        return made

    async def _check_selector(self, kind: Kind, wanted: Object) -> None:
        """Raise ConfigError if the target would drop the selector, and with it all bounds."""
        try:
            tried = await self._target.try_apply(kind, wanted, manager=MANAGER)
        except Denied:
            return  # which `_apply` tells
        except ApiError as error:
            if "namespaceSelector" in error.message:  # an undeclared field, as API servers say
                raise ConfigError(grants.UNKNOWN_SELECTOR) from error

            raise

        if not source_rbac.selects_namespaces(tried):
            raise ConfigError(grants.UNKNOWN_SELECTOR)

    async def _make_account(self, source: Object) -> Object:
        """Create the service account, as the target's agent would, since that may not run yet.

        One of an earlier Source is replaced: it will be garbage collected, its tokens revoked.
        """
        account = source_rbac.service_account(source_rbac.parse(source))
        name = objects.name(account)
        present = await find(self._target, kinds.SERVICE_ACCOUNTS, name, self._connection.home)
        if present is not None:
            if not desired.is_of_earlier(present, source):
                return present

            await self._target.discard(kinds.SERVICE_ACCOUNTS, present)

        try:
            made = await self._target.create(kinds.SERVICE_ACCOUNTS, account)
        except AlreadyExists:  # the agent was faster
            return await self._target.get(kinds.SERVICE_ACCOUNTS, name, self._connection.home)

        self._report(f"target: serviceaccount/{name} created")
        return made

    async def _grant(
        self,
        client: Client,
        build: Callable[[DesiredConnection, Object], list[tuple[Kind, Object]]],
        owner: Object,
        side: str,
    ) -> None:
        """Give the rights to renew the token; a connection works without them until it ends."""
        try:
            for kind, obj in build(self._connection, owner):
                await self._apply(client, kind, obj, side)
        except ConfigError as error:
            self._report(
                f"Warning: the token will not be renewed: {error}. Or pass --no-renew, and connect "
                "again before the token ends."
            )

    async def _make_secret(self, account: Object) -> Object:
        connection = self._connection
        secret = await find(self._source, kinds.SECRETS, connection.secret_name, connection.home)
        data = (secret or {}).get("data") or {}
        present = base64.b64decode(data.get(desired.KEY) or "")
        token = kubeconfigs.token_in(present) or ""
        fresh = desired.is_fresh(token, self._now())
        if not (fresh and desired.is_of(token, account) and await self._is_accepted(token)):
            token = await self._request_token()

        kubeconfig = kubeconfigs.build(connection.endpoint, token, connection.home)
        wanted = desired.secret_object(connection, kubeconfig)
        applied = await self._apply(self._source, kinds.SECRETS, wanted, "source")
        if life := kubeconfigs.lifetime(token):
            end = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(life[1]))
            who = "the source's agent renews it before"
            if not connection.renewal:
                who = "connect again before, to renew it"

            self._report(f"The token ends on {end}; {who}.")

        return applied

    async def _is_accepted(self, token: str) -> bool:
        """Tell whether the target accepts the token for our service account, or denies a review."""
        review = {
            "apiVersion": kinds.TOKEN_REVIEWS.api_version,
            "kind": kinds.TOKEN_REVIEWS.kind,
            "spec": {"token": token},
        }
        try:
            status = objects.status(await self._target.create(kinds.TOKEN_REVIEWS, review))
        except Denied:
            return True

        user = account_users.user_of(self._connection.home, self._connection.cluster_name)
        return bool(status.get("authenticated")) and status["user"]["username"] == user

    async def _request_token(self) -> str:
        account, spec = (
            self._connection.cluster_name,
            {"expirationSeconds": self._connection.lifetime},
        )
        granted = await account_tokens.request(self._target, self._connection.home, account, spec)
        self._report(f"target: token of serviceaccount/{account} issued")
        return granted.text

    async def _apply(self, client: Client, kind: Kind, obj: Object, side: str) -> Object:
        try:
            present = await find(client, kind, objects.name(obj), objects.namespace(obj))
            applied = await client.apply(kind, obj, manager=MANAGER)
        except Denied as error:
            raise ConfigError(
                f"may not apply {kind.kind} {objects.key(obj)} in the {side}: {error.message}; "
                f"use a kubeconfig (--{side}) with that permission"
            ) from error

        versions = objects.resource_version(present or {}), objects.resource_version(applied)
        done = "unchanged" if versions[0] == versions[1] else "configured"
        self._report(
            f"{side}: {kind.kind.lower()}/{objects.name(obj)} {done if present else 'created'}"
        )
        return applied
