"""Reads the facts of a connection: one Target, with the credentials of its own Secret."""

from __future__ import annotations

import asyncio
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ApiError, ConfigError, NotFound, VnodeError
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.cli.doctor import examining
from vnode.cli.doctor.facts import ConnectionFacts
from vnode.insight.collecting import TIMEOUT, connected
from vnode.kube.client import Client
from vnode.targets import cluster_identity, expiry, model, probing, secrets
from vnode.targets.cluster_identity import Recognition

# The permissions that the source's agent needs in a target; the role admiralty-source has them.
_RIGHTS: Final[tuple[tuple[str, Kind, str], ...]] = (
    *((verb, kinds.POD_CHAPERONS, "") for verb in ("create", "list", "watch", "patch", "delete")),
    ("list", kinds.PODS, ""),
    ("get", kinds.PODS, ""),
    ("get", kinds.PODS, "log"),
    ("create", kinds.PODS, "exec"),
    ("get", kinds.CLUSTER_SUMMARIES, ""),
)


async def read_all(client: Client, targets: list[Object], clock: Clock) -> list[ConnectionFacts]:
    """Read the facts of each Target, all at the same time."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_read(client, target, clock), name=f"try {objects.key(target)}")
            for target in targets
        ]

    return [task.result() for task in tasks]


async def _read(client: Client, target: Object, clock: Clock) -> ConnectionFacts:
    key = model.key_of(target)
    namespace = await examining.or_none(client.get(kinds.NAMESPACES, key.namespace or "default"))
    labels = objects.labels(namespace) if namespace and key.namespace else None
    node = await examining.or_none(client.get(kinds.NODES, key.node_name))
    end, invalid = None, ""
    try:
        end = await _end(client, target)
        async with asyncio.timeout(TIMEOUT), connected(client, target) as remote:
            return await _read_target(remote, target, clock, labels=labels, node=node, end=end)
    except TimeoutError:
        failure = f"no answer within {TIMEOUT:.0f} s"
    except ConfigError as error:
        failure, invalid = "", str(error)
    except VnodeError as error:
        failure = ": ".join(probing.explain(error, key.namespace))

    return ConnectionFacts(
        target,
        clock.now(),
        end=end,
        invalid=invalid,
        failure=failure,
        namespace_labels=labels,
        node=node,
    )


async def _end(client: Client, target: Object) -> expiry.CredentialExpiry | None:
    spec = model.parse(target)
    if spec.secret is None:
        return None

    try:
        secret = await client.get(kinds.SECRETS, spec.secret.name, spec.secret.namespace)
    except NotFound:
        secret = None

    return expiry.of_kubeconfig(secrets.kubeconfig(secret, spec.secret), spec.secret.context)


async def _read_target(
    remote: Client,
    target: Object,
    clock: Clock,
    *,
    labels: dict[str, str] | None,
    node: Object | None,
    end: expiry.CredentialExpiry | None,
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
        summary = await remote.get(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
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
        rights={} if objects.spec(target).get("self") else await _rights(remote, namespace),
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


async def _rights(remote: Client, namespace: str) -> dict[str, bool]:
    """Ask the target which of `_RIGHTS` the credentials have."""
    found: dict[str, bool] = {}
    for verb, kind, subresource in _RIGHTS:
        attributes = {
            "verb": verb,
            "group": kind.group,
            "resource": kind.plural,
            "subresource": subresource,
            "namespace": namespace if kind.namespaced else "",
        }
        review = await examining.or_none(
            remote.create(
                kinds.SELF_SUBJECT_ACCESS_REVIEWS, {"spec": {"resourceAttributes": attributes}}
            )
        )
        if review is not None:
            name = f"{verb} {kind.plural}" + (f"/{subresource}" if subresource else "")
            found[name] = bool(objects.status(review).get("allowed"))

    return found
