"""Reads the facts about a pod from the source and, with their Secrets' credentials, from targets.

That a target did not answer in time (`target_clients`) is a fact, too. A target may answer
anything: what is read of it is bounded, since agents collect facts as well, for their dashboards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Final

from vnode.api import device_claims, keys, kinds, objects, shapes, taints
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError, Denied, NotFound, TooLarge, VnodeError
from vnode.api.identity import is_chaperon_of
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.following import policy_forms
from vnode.insight import failing, image_cures, owners, status_text
from vnode.insight.facts import Facts, TargetFacts
from vnode.insight.target_clients import TIMEOUT, Connect, connected
from vnode.insight.usable_targets import readable
from vnode.kube.answer_limits import AnswerLimit
from vnode.kube.client import Client
from vnode.placement.policies import decoding
from vnode.runtime.leader import AGENT_LEASE as LEASE
from vnode.scheduling import diagnosis, reported
from vnode.targets import model

MOST_EVENTS: Final = 100
"""Events of one pod that are told: the last ones."""
MOST_LOOKED_UP: Final = 100
"""Objects of each sort that are looked up of those that a pod names."""
_OF_ONE_POD: Final = AnswerLimit(4 * 1024 * 1024, 50_000)
"""What a pod's chaperons in one target, or its Events, may take as they are sent: some KiB each."""


async def collect(
    client: Client,
    name: str,
    namespace: str,
    *,
    agent_namespace: str,
    clock: Clock,
    connect: Connect | None = None,
) -> Facts:
    """Read everything about the pod; ConfigError if it does not exist.

    `connect` yields the client of a Target, for callers that have connections; by default
    `connected`.
    """
    pod = await get_pod(client, name, namespace)
    is_proxy = status_text.is_proxy(pod)
    targets, unread = await readable(client, namespace) if is_proxy else ([], ())
    labels = diagnosis.labels(map(model.key_of, targets))
    now = clock.now()
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(
                _ask(connect or connected, client, TargetFacts(key, target, label=label), pod, now),
                name=f"ask {key}",
            )
            for target, (key, label) in zip(targets, labels.items(), strict=True)
        ]

    selector, node = f"involvedObject.uid={objects.uid(pod)}", objects.node_name(pod)
    is_other = node and is_proxy and node not in {t.node_name for t in labels}
    return Facts(
        pod,
        now,
        await _maybe(client, kinds.NAMESPACES, namespace),
        await _events(client, namespace, selector),
        tuple(task.result() for task in tasks),
        await _maybe(client, kinds.LEASES, LEASE, agent_namespace),
        await _policies(client, pod),
        await _maybe(client, kinds.NODES, node) if is_other else None,
        await _lacking_claims(client, pod),
        None if is_proxy else await owners.maker_of(client, pod),
        unread,
    )


async def get_pod(client: Client, name: str, namespace: str) -> Object:
    """Return a pod; ConfigError if it does not exist."""
    try:
        return await client.get(kinds.PODS, name, namespace)
    except NotFound as error:
        raise ConfigError(f"there is no pod {name!r} in namespace {namespace!r}") from error


async def _lacking_claims(client: Client, pod: Object) -> frozenset[str]:
    """Return the PersistentVolumeClaims that a pod names and its namespace lacks."""
    volumes = objects.spec(pod).get("volumes") or ()
    named = {str((v.get("persistentVolumeClaim") or {}).get("claimName") or "") for v in volumes}
    lacking = set()
    for name in sorted(filter(None, named))[:MOST_LOOKED_UP]:
        try:
            await client.get(kinds.CLAIMS, name, objects.namespace(pod))
        except NotFound:
            lacking.add(name)
        except Denied:
            continue

    return frozenset(lacking)


async def _policies(client: Client, pod: Object) -> Objects:
    """List the placement policies that may be for a pod; none where they may not be read."""
    if not status_text.is_proxy(pod):
        return []

    found: Objects = []
    for kind in decoding.KINDS:
        try:
            found += await client.list(kind, objects.namespace(pod) if kind.namespaced else None)
        except (NotFound, Denied):
            continue

    return found


async def _ask(
    connect: Connect, local: Client, facts: TargetFacts, pod: Object, now: datetime
) -> TargetFacts:
    facts = replace(facts, node=await _maybe(local, kinds.NODES, facts.key.node_name))
    try:
        async with asyncio.timeout(TIMEOUT), connect(local, facts.target) as client:
            facts = await _inspect(client, facts, pod, now)
            if facts.delegate is not None and client is not local:
                facts = replace(facts, unenforced=await _unenforced(local, client, pod))

            in_source = await _missing(local, pod, wants_image=True) if facts.missing else ()
            return replace(facts, missing_in_source=frozenset(facts.missing) & frozenset(in_source))
    except TimeoutError:
        return replace(facts, error=f"no answer within {TIMEOUT:.0f} s")
    except VnodeError as error:
        return replace(facts, error=str(error))


async def _inspect(client: Client, facts: TargetFacts, pod: Object, now: datetime) -> TargetFacts:
    namespace, selector = objects.namespace(pod), f"{keys.PARENT_UID}={objects.uid(pod)}"
    found = await client.list(
        kinds.POD_CHAPERONS, namespace, label_selector=selector, limit=_OF_ONE_POD
    )
    key, uid = objects.key(pod), objects.uid(pod)
    chaperons = [each for each in found if is_chaperon_of(each, key, uid)]
    if not chaperons:
        return facts

    delegate = await _maybe(client, kinds.PODS, objects.name(chaperons[0]), namespace)
    facts = replace(facts, chaperon=chaperons[0], delegate=delegate)
    if "taint" in facts.rejection:
        facts = replace(facts, taints=await _taints(client))

    if delegate is None:
        return facts

    facts = replace(facts, devices=await _devices(client, delegate))
    if objects.status(delegate).get("phase") == "Running" and failing.find(delegate, now) is None:
        return facts

    events = await _events(client, namespace, f"involvedObject.uid={objects.uid(delegate)}")
    failure = failing.find(delegate, now)
    is_image = failure is not None and failure.kind is failing.FailureKind.IMAGE
    wants_image = is_image and image_cures.may_lack_secret(failure.text if failure else "")
    missing = await _missing(client, delegate, wants_image=wants_image)
    return replace(facts, events=events, missing=missing)


async def _taints(client: Client) -> tuple[str, ...]:
    """Return the taints of a target's nodes that keep pods away, as its agent tells them."""
    summary = await _maybe(client, kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
    rows = reported.read_rows(shapes.trim_summary(summary) if summary else None)
    found = (taint for alike in (rows.alike if rows else ()) for taint in alike.taints)
    return tuple(dict.fromkeys(map(taints.describe, found)))


async def _devices(client: Client, delegate: Object) -> tuple[str, ...]:
    """Return the devices of a delegate's claims; of those that may not be read, none."""
    found = []
    for what, name in islice(device_claims.names(delegate).items(), MOST_LOOKED_UP):
        claim = await _maybe(client, kinds.RESOURCE_CLAIMS, name, objects.namespace(delegate))
        if devices := device_claims.devices(claim or {}):
            found.append(f"{what}: {', '.join(devices)}")

    return tuple(found)


async def _unenforced(local: Client, client: Client, pod: Object) -> tuple[str, ...]:
    """Return the NetworkPolicies that select a pod and have no copy in its target; none where they
    may not be read here."""
    namespace, labels = objects.namespace(pod), objects.labels(pod)
    try:
        found = await local.list(kinds.NETWORK_POLICIES, namespace)
    except (NotFound, Denied):
        return ()

    lacking = []
    for policy in found:
        if policy_forms.form_of(policy).selects(labels) and not objects.is_terminating(policy):
            copy = await _maybe(client, kinds.NETWORK_POLICIES, objects.name(policy), namespace)
            made_of = objects.labels(copy or {}).get(keys.PARENT_UID)
            if made_of != objects.uid(policy):
                lacking.append(objects.name(policy))

    return tuple(lacking)


async def _missing(client: Client, pod: Object, *, wants_image: bool) -> tuple[str, ...]:
    """Return what the pod uses and its namespace in that cluster lacks, as `ConfigMap "x"`.

    With `wants_image` those are Secrets for pulling images, too, without which a pod may start.
    """
    lacking, used = [], references(pod)
    if wants_image:
        pulling = objects.spec(pod).get("imagePullSecrets") or ()
        used |= {(kinds.SECRETS, str(each["name"])) for each in pulling if each.get("name")}

    first = sorted(used, key=lambda each: (each[0].kind, each[1]))[:MOST_LOOKED_UP]
    for kind, name in first:
        try:
            await client.get(kind, name, objects.namespace(pod))
        except NotFound:
            lacking.append(f'{kind.kind} "{name}"')
        except Denied:
            continue

    return tuple(lacking)


def references(pod: Object) -> set[tuple[Kind, str]]:
    """Return the ConfigMaps and Secrets without which a pod does not start. Pure."""
    spec = objects.spec(pod)
    found: set[tuple[Kind, str]] = set()
    for volume in spec.get("volumes") or ():
        for source in (volume, *((volume.get("projected") or {}).get("sources") or ())):
            found.update(_named(source.get("configMap"), kinds.CONFIG_MAPS))
            found.update(_named(source.get("secret"), kinds.SECRETS))

    for field in ("initContainers", "containers"):
        for container in spec.get(field) or ():
            for source in container.get("envFrom") or ():
                found.update(_named(source.get("configMapRef"), kinds.CONFIG_MAPS))
                found.update(_named(source.get("secretRef"), kinds.SECRETS))

            for variable in container.get("env") or ():
                value = variable.get("valueFrom") or {}
                found.update(_named(value.get("configMapKeyRef"), kinds.CONFIG_MAPS))
                found.update(_named(value.get("secretKeyRef"), kinds.SECRETS))

    return found


def _named(reference: Object | None, kind: Kind) -> Iterator[tuple[Kind, str]]:
    wanted = reference if reference and not reference.get("optional") else {}
    if name := wanted.get("name") or wanted.get("secretName"):
        yield kind, str(name)


async def _maybe(
    client: Client, kind: Kind, name: str, namespace: str | None = None
) -> Object | None:
    try:
        return await client.get(kind, name, namespace)
    except (NotFound, Denied):
        return None


async def _events(client: Client, namespace: str, selector: str) -> Objects:
    """List the last Events, oldest first; none where they may not be read, as in targets, or are
    more than can be."""
    try:
        found = await client.list(
            kinds.EVENTS, namespace, field_selector=selector, limit=_OF_ONE_POD
        )
    except (NotFound, Denied, TooLarge):
        return []

    return sorted(found, key=moment)[-MOST_EVENTS:]


def moment(event: Object) -> str:
    """Return when an Event last happened, as an API timestamp."""
    last = event.get("lastTimestamp") or event.get("eventTime")
    return str(last or objects.created(event))
