"""Reads the facts of a connection: one Target, with the credentials of its own Secret."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import NamedTuple

from vnode.api import keys, kinds, objects, shapes
from vnode.api.clock import Clock
from vnode.api.errors import ApiError, ConfigError, NotFound, VnodeError
from vnode.api.objects import Object
from vnode.cli.doctor import examining, trying_namespaces, trying_profiles
from vnode.cli.doctor.facts import ConnectionFacts
from vnode.insight.target_clients import TIMEOUT, connected
from vnode.kube.client import Client
from vnode.targets import (
    cluster_identity,
    expiry,
    model,
    probing,
    renewal_rights,
    secrets,
    token_renewal,
)
from vnode.targets.cluster_identity import Recognition
from vnode.targets.expiry import CredentialExpiry, Renewal
from vnode.targets.profiles.config import InventoryConfig
from vnode.targets.token_renewal import ManagedToken


class _Credentials(NamedTuple):
    """What the Secret of a Target says of its credentials; `token` is one that can be renewed."""

    end: CredentialExpiry | None = None
    renewal: Renewal | None = None
    token: ManagedToken | None = None


async def read_all(
    client: Client,
    targets: list[Object],
    clock: Clock,
    inventory: InventoryConfig | None = None,
) -> list[ConnectionFacts]:
    """Read the facts of each Target, all at the same time.

    With the agent's `inventory`, plugins of ClusterProfiles are run here.
    """
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(
                _read(client, target, clock, inventory), name=f"try {objects.key(target)}"
            )
            for target in targets
        ]

    return [task.result() for task in tasks]


async def _read(
    client: Client, target: Object, clock: Clock, inventory: InventoryConfig | None
) -> ConnectionFacts:
    key = model.key_of(target)
    namespace = await examining.or_none(client.get(kinds.NAMESPACES, key.namespace or "default"))
    labels = objects.labels(namespace) if namespace and key.namespace else None
    node = await examining.or_none(client.get(kinds.NODES, key.node_name))
    credentials, invalid, facts = _Credentials(), "", None
    try:
        if (spec := model.parse(target)).profile is not None:
            facts, where = await trying_profiles.read(
                client, spec.profile, inventory, spec.last_profile
            )
            if where is None:
                return ConnectionFacts(
                    target,
                    clock.now(),
                    namespace_labels=labels,
                    node=node,
                    profile=facts,
                    tried=False,
                )

            async with asyncio.timeout(TIMEOUT), Client(where, name=str(key)) as remote:
                found = await _read_target(
                    remote, target, clock, labels=labels, node=node, end=None
                )
                found = await trying_namespaces.completed(found, client, remote)
                return replace(found, profile=facts)

        credentials = await _credentials(client, target)
        async with asyncio.timeout(TIMEOUT), connected(client, target) as remote:
            found = await _read_target(
                remote, target, clock, labels=labels, node=node, end=credentials.end
            )
            found = await trying_namespaces.completed(found, client, remote)
            return replace(found, renewal=await _renewal(remote, credentials))
    except TimeoutError:
        failure = f"no answer within {TIMEOUT:.0f} s"
    except ConfigError as error:
        failure, invalid = "", str(error)
    except VnodeError as error:
        failure = ": ".join(probing.explain(error, key.namespace))

    return ConnectionFacts(
        target,
        clock.now(),
        end=credentials.end,
        renewal=credentials.renewal,
        invalid=invalid,
        failure=failure,
        namespace_labels=labels,
        node=node,
        profile=facts,
    )


async def _credentials(client: Client, target: Object) -> _Credentials:
    spec = model.parse(target)
    if spec.secret is None:
        return _Credentials()

    try:
        secret = await client.get(kinds.SECRETS, spec.secret.name, spec.secret.namespace)
    except NotFound:
        secret = None

    kubeconfig = secrets.kubeconfig(secret, spec.secret)
    renewal = token_renewal.plan(secret or {}, kubeconfig)
    token = None
    if renewal and not renewal.failure:
        token = token_renewal.managed(secret or {}, kubeconfig)

    return _Credentials(expiry.of_kubeconfig(kubeconfig), renewal, token)


async def _renewal(remote: Client, credentials: _Credentials) -> Renewal | None:
    """Return what becomes of credentials, after asking the target whether it can."""
    renewal, token = credentials.renewal, credentials.token
    if renewal is None or token is None:
        return renewal

    may_ask = await examining.or_none(renewal_rights.may_ask(remote, token))
    return Renewal(None, renewal_rights.refused_by_target(token)) if may_ask is False else renewal


async def _read_target(
    remote: Client,
    target: Object,
    clock: Clock,
    *,
    labels: dict[str, str] | None,
    node: Object | None,
    end: CredentialExpiry | None,
) -> ConnectionFacts:
    namespace = objects.namespace(target)
    _version, skew = await examining.read_version(remote)
    failure = ""
    try:
        await probing.probe(remote, namespace, _recognition(target))
    except VnodeError as error:
        failure = ": ".join(probing.explain(error, namespace))

    summary, missing = None, False
    try:
        found = await remote.get(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
        summary = shapes.trim_summary(found)
    except NotFound:
        missing = True
    except ApiError:
        pass

    return ConnectionFacts(
        target,
        clock.now(),
        end=end,
        failure=failure,
        skew=skew,
        rights={}
        if objects.spec(target).get("self")
        else await trying_namespaces.rights(remote, namespace),
        namespace_labels=labels,
        summary=summary,
        summary_missing=missing,
        node=node,
    )


def _recognition(target: Object) -> Recognition | None:
    if objects.spec(target).get("self"):
        return None

    key, expected = model.key_of(target), cluster_identity.expected(target)
    return Recognition(key, lambda: expected, lambda _uid: None)
