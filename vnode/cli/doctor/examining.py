"""Reads the facts of one cluster. What may not be read stays unknown; nothing is changed.

The only write is a trial pod, which is not kept (`trial_pods`).
"""

from __future__ import annotations

import asyncio
import ssl
import time
import urllib.parse
from collections.abc import Awaitable, Iterable
from datetime import UTC, datetime
from typing import Final, TypeVar

from cryptography import x509

from vnode.api import keys, kinds, objects, scheduled_condition
from vnode.api.clock import Clock
from vnode.api.errors import ApiError, Denied, NotFound, Unreachable, VnodeError
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.cli import installation, installed, manifests
from vnode.cli.doctor import trial_pods
from vnode.cli.doctor.facts import ClusterFacts, ScopeFacts
from vnode.cli.doctor.trial_pods import Trial
from vnode.cli.manifests import SERVICE
from vnode.cli.migration import signing
from vnode.cli.neighbours import own_objects
from vnode.cli.neighbours.own_objects import OwnObjects
from vnode.cli.remove import admiralty_finalizers
from vnode.kube import answer_limits, answers, decoding, server_clock
from vnode.kube.client import Client
from vnode.nodes.candidate_scheduler import LEASE as SCHEDULER_LEASE
from vnode.runtime.leader import AGENT_LEASE as LEASE

_PLACEMENTS: Final = (kinds.PLACEMENT_POLICIES, kinds.CLUSTER_PLACEMENT_POLICIES)
_OVERRIDES: Final = (kinds.OVERRIDE_POLICIES, kinds.CLUSTER_OVERRIDE_POLICIES)
_TIMEOUT: Final = 5.0  # seconds for one connection
_MAX_CANDIDATES: Final = 200  # pods to judge the candidate scheduler by

T = TypeVar("T")


async def examine(client: Client, name: str, namespace: str, clock: Clock) -> ClusterFacts:
    """Read all facts of a cluster whose agent runs in that namespace."""
    try:
        version, skew = await read_version(client)
    except VnodeError as error:
        return ClusterFacts(name, clock.now(), unreachable=str(error))

    system = await or_none(client.get(kinds.NAMESPACES, "kube-system"))
    leases = await or_none(client.list(kinds.LEASES, namespace))
    candidates = await _candidates(client)
    webhook, denied = await _webhook(client)
    named = installed.read(webhook).named
    targets = await _of_kinds(client, (kinds.TARGETS, kinds.CLUSTER_TARGETS))
    sources = await _of_kinds(client, (kinds.SOURCES, kinds.CLUSTER_SOURCES))
    selector = f"{keys.PROVIDER_LABEL}={keys.PROVIDER}"
    nodes = await or_none(client.list(kinds.NODES, label_selector=selector)) or []
    trial = await trial_pods.find(client, named) if targets and webhook else Trial()
    return ClusterFacts(
        name,
        clock.now(),
        namespace,
        await or_none(client.get(kinds.SERVICES, SERVICE, namespace)) is not None,
        uid=objects.uid(system or {}),
        version=version,
        skew=skew,
        crds=await or_none(client.list(kinds.CRDS, label_selector=manifests.PART_OF)),
        roles=await or_none(client.list(kinds.CLUSTER_ROLES, label_selector=manifests.PART_OF)),
        policies=await or_none(
            client.list(kinds.VALIDATING_POLICIES, label_selector=manifests.PART_OF)
        ),
        agent_lease=_named(leases, LEASE),
        scheduler_lease=_named(leases, SCHEDULER_LEASE),
        may_read_leases=leases is not None,
        waiting=[pod for pod in candidates if not _is_looked_at(pod)],
        placed=[pod for pod in candidates if _is_looked_at(pod)],
        webhook=webhook,
        webhook_denied=denied,
        serving=await _serving(webhook),
        admission=trial.failure,
        refused_trial=trial.refused,
        targets=targets,
        sources=sources,
        nodes=nodes,
        kubelets={objects.name(node): await _kubelet(client, objects.name(node)) for node in nodes},
        summary=await or_none(client.get(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)),
        chaperons=await or_none(client.list(kinds.POD_CHAPERONS)) or [],
        token_requests=await or_none(client.list(kinds.AUTH_TOKEN_REQUESTS)),
        issuers=await or_none(client.list(kinds.CLUSTER_ROLE_BINDINGS)),
        target_sets=await target_sets(client),
        placement_policies=await _of_kinds(client, _PLACEMENTS) if targets else [],
        override_policies=await _of_kinds(client, _OVERRIDES) if targets else [],
        own=await own_objects.read(client, nodes) if targets else OwnObjects(),
        unplaced=await or_none(client.list(kinds.PODS, field_selector=signing.WAITING)) or [],
        outside=await outside(client) if targets else [],
        finalized=await _finalized(client) if targets else [],
        scope=await _scope(client, named) if named else None,
    )


async def _scope(client: Client, named: tuple[str, ...]) -> ScopeFacts:
    """Read what there is of the namespaces to which the agent is held."""
    label = "=".join(keys.WEBHOOK_NAMESPACE_LABEL)
    labelled = await or_none(client.list(kinds.NAMESPACES, label_selector=label)) or []
    missing, closed = [], []
    for name in named:
        if not await _exists(client, kinds.NAMESPACES, name):
            missing.append(name)
        elif not await _exists(client, kinds.ROLE_BINDINGS, manifests.ACCOUNT, name):
            closed.append(name)

    left_out = [name for name in map(objects.name, labelled) if name not in named]
    return ScopeFacts(named, tuple(left_out), tuple(missing), tuple(closed))


async def _exists(client: Client, kind: Kind, name: str, namespace: str = "") -> bool:
    """Tell whether there is an object of that name; True also if it may not be read."""
    try:
        return await installation.find(client, kind, name, namespace) is not None
    except ApiError:
        return True


async def outside(client: Client) -> list[str]:
    """Name the pods that ask to be sent, in namespaces that do not take part."""
    label, value = keys.WEBHOOK_NAMESPACE_LABEL
    listed = await or_none(client.list(kinds.NAMESPACES, label_selector=f"{label}!={value}")) or []
    asks = {objects.name(space): keys.ELECT in objects.annotations(space) for space in listed}
    pods, _version = await or_none(client.list_at(kinds.PODS, metadata_only=True)) or ([], "")
    return [
        objects.key(pod)
        for pod in pods
        if objects.namespace(pod) in asks
        and (asks[objects.namespace(pod)] or keys.ELECT in objects.annotations(pod))
        and keys.NO_ELECT not in objects.annotations(pod)
    ]


async def _finalized(client: Client) -> list[str]:
    """Name the objects that follow pods and have a finalizer of Admiralty's."""
    return [
        f"{kind.kind.lower()}/{objects.key(obj)}"
        for kind in admiralty_finalizers.COPIED
        for obj in await or_none(admiralty_finalizers.held(client, kind)) or ()
    ]


async def target_sets(client: Client) -> Objects:
    """Return the sets that may be read, of both kinds."""
    return await _of_kinds(client, (kinds.TARGET_SETS, kinds.CLUSTER_TARGET_SETS))


async def _of_kinds(client: Client, listed: Iterable[Kind]) -> Objects:
    """Return the objects of these kinds that may be read."""
    return [obj for kind in listed for obj in await or_none(client.list(kind)) or ()]


async def or_none(request: Awaitable[T]) -> T | None:
    """Await a request; return None for an object that does not exist, or may not be read."""
    try:
        return await request
    except ApiError:
        return None


def _skew(date: str, at: float) -> float:
    """Return by how many seconds a clock is ahead that shows `date`; ValueError if that is none."""
    told = server_clock.seconds_of(date)
    if told is None:
        raise ValueError("its header Date is none")

    # The header has whole seconds: on average half a second has passed since.
    ahead = told + 0.5 - at
    return min(max(ahead, -server_clock.FARTHEST), server_clock.FARTHEST)


async def read_version(client: Client) -> tuple[str, float | None]:
    """Return the version of an API server, and by how many seconds its clock is ahead of ours."""
    before = time.time()
    async with client.stream("GET", "/version", query={}, silence=_TIMEOUT) as response:
        middle = (before + time.time()) / 2
        date = response.headers.get("Date")
        with answers.translate_errors(client.name):
            async with asyncio.timeout(_TIMEOUT):
                payload = await answers.read(response, answer_limits.SMALL.size)

        try:
            found = decoding.decode_at_once(payload, answer_limits.SMALL)
            text = str(found.get("gitVersion", "")) if isinstance(found, dict) else ""
            skew = _skew(date, middle) if date else None
        except (Unreachable, ValueError, TypeError) as error:
            raise Unreachable(f"{client.name}: no Kubernetes API answers: {error}") from error

    return text, skew


def _named(listed: Objects | None, name: str) -> Object | None:
    return next((obj for obj in listed or () if objects.name(obj) == name), None)


async def _candidates(client: Client) -> Objects:
    """List delegate pods that the candidate scheduler is to place, or has placed."""
    selector = f"spec.schedulerName={keys.CANDIDATE_SCHEDULER}"
    pods = await or_none(client.list(kinds.PODS, field_selector=selector)) or []
    return pods[:_MAX_CANDIDATES]


def _is_looked_at(pod: Object) -> bool:
    status = objects.status(pod)
    return bool(objects.node_name(pod)) or scheduled_condition.rejection(status) is not None


async def _webhook(client: Client) -> tuple[Object | None, bool]:
    try:
        return await client.get(kinds.MUTATING_WEBHOOKS, manifests.WEBHOOK), False
    except NotFound:
        return None, False
    except Denied:
        return None, True


async def _serving(webhook: Object | None) -> datetime | None:
    """Return the expiry of the certificate at the webhook's URL, if we can reach it."""
    hook, *_ = (webhook or {}).get("webhooks") or [{}]
    url = urllib.parse.urlsplit((hook.get("clientConfig") or {}).get("url") or "")
    if not url.hostname:
        return None

    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # only its end is read
    try:
        async with asyncio.timeout(_TIMEOUT):
            opened = asyncio.open_connection(url.hostname, url.port or 443, ssl=context)
            _reader, writer = await opened
    except (OSError, TimeoutError):
        return None

    try:
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    finally:
        writer.transport.abort()

    return x509.load_der_x509_certificate(der).not_valid_after_utc.astimezone(UTC)


async def _kubelet(client: Client, node: str) -> str:
    """Return why the API server does not reach a virtual node's kubelet API; "" if it does."""
    path = kinds.NODES.path(None, node, "proxy") + "/healthz"
    try:
        async with client.stream("GET", path, query={}, silence=_TIMEOUT):
            return ""
    except (ApiError, Unreachable) as error:
        return str(error)
