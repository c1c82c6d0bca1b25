"""Removes a source's side: chaperons in its targets, finalizers of proxy pods, virtual nodes.

Where an agent leads, it does all of this itself when a Target is deleted, and gets the time for it.
This module does what the agent has not done by then, or everything where no agent runs: it deletes
the chaperons in the targets, then removes the finalizers from the proxy pods, then deletes the
virtual nodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vnode.api import keys, kinds, lease_holders, objects, target_key
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError, Conflict, Denied, NotFound
from vnode.api.objects import Object, Objects
from vnode.api.target_key import TargetKey
from vnode.cli import identity, tables, waiting
from vnode.cli.remove import remote_cleanup
from vnode.cli.remove.remote_cleanup import RemoteObjects
from vnode.cli.remove.report import RemovalReport, counted, remove
from vnode.kube.client import Client
from vnode.pods.source import feedback
from vnode.runtime.leader import AGENT_LEASE as LEASE
from vnode.runtime.leader import LeaseTiming
from vnode.targets import finalizing, model


@dataclass(frozen=True, slots=True)
class Ends:
    """Configures a removal: `seconds` for each wait, and whether delegate pods are kept."""

    seconds: float
    keep: bool = False


async def agent_leads(client: Client, namespace: str, clock: Clock) -> str:
    """Return the agent that holds the Lease of a cluster; "" if none does, or it has expired."""
    try:
        lease = await client.get(kinds.LEASES, LEASE, namespace)
    except NotFound:
        return ""
    except Denied:
        return "(unknown: its Lease may not be read)"

    return lease_holders.live_holder(lease, clock.now())


async def leads_on(client: Client, namespace: str, clock: Clock, report: RemovalReport) -> str:
    """Return the agent that still leads once the Lease of one that was stopped would be over.

    One that is stopped with `helm uninstall` has no right any more to give its Lease up.
    """
    if not (holder := await agent_leads(client, namespace, clock)):
        return ""

    report.say(f"waiting until the lease of {holder} is over")
    await clock.sleep(LeaseTiming().duration + lease_holders.SLACK.total_seconds())
    return await agent_leads(client, namespace, clock)


async def end_targets(
    client: Client, targets: Objects, *, led: bool, ends: Ends, report: RemovalReport
) -> None:
    """Delete these Targets with their delegate pods; remove the finalizers from all proxy pods.

    `led` says whether an agent leads here. Delegate pods that cannot be deleted are reported.
    """
    me = await identity.identity(client)
    if not led and not me.uid:
        raise ConfigError(
            "no agent is running, and these credentials may not read the namespace kube-system, "
            "whose UID identifies this cluster's pods in targets: start the agent, or use other "
            "credentials"
        )

    ending = frozenset(map(objects.key, targets))
    remotes = [RemoteObjects(target, me, ending) for target in targets]
    if not led and not ends.keep:
        await asyncio.gather(
            *(remote_cleanup.delete(client, remote, ends.seconds, report) for remote in remotes)
        )

    counts = await _counts(client, targets)
    for target in targets:
        if not led and finalizing.is_due(target):  # the agent ended before it had cleaned up
            await finalizing.remove_finalizer(client, target)

        await remove(client, tables.target_kind(target), target, report)

    keys_ = [model.key_of(target) for target in targets]
    if led:
        await _leave_to_agent(client, keys_, ends)
        for remote in remotes if me.uid else ():
            await remote_cleanup.find(client, remote, report, counts[remote.name])

    await release(client, keys_, report)
    if ends.keep:
        for remote in remotes:
            if count := counts[remote.name]:
                report.left.append(
                    f"target {remote.name}: {counted(count, 'delegate pod')} kept, as requested. "
                    f"To delete them, run in that cluster: {remote.command}; and when they are "
                    f"gone, what was copied for them: {remote.copies_command}"
                )


async def _counts(client: Client, targets: Objects) -> dict[str, int]:
    """Count the pods that are bound to each target."""
    found = {}
    for target in targets:
        node = model.key_of(target).node_name
        pods = await client.list(kinds.PODS, field_selector=f"spec.nodeName={node}")
        found[objects.key(target)] = len(pods)

    return found


async def _leave_to_agent(client: Client, targets: Sequence[TargetKey], ends: Ends) -> None:
    """Wait until the agent has deleted the virtual nodes and removed our finalizers."""
    names = {key.node_name for key in targets}
    finalizers = {key.finalizer for key in targets}
    await waiting.until_gone(
        client,
        kinds.NODES,
        lambda node: objects.name(node) in names,
        ends.seconds,
        label_selector=f"{keys.PROVIDER_LABEL}={keys.PROVIDER}",
    )
    await waiting.until_gone(
        client,
        kinds.PODS,
        lambda pod: (
            objects.node_name(pod) in names and not finalizers.isdisjoint(objects.finalizers(pod))
        ),
        ends.seconds,
        label_selector=f"{keys.HAS_FINALIZER}=true",
    )


async def release(client: Client, targets: Sequence[TargetKey], report: RemovalReport) -> None:
    """Remove the finalizers of these targets from all pods, and delete their virtual nodes.

    Pods on those nodes are deleted with them; other pods stay as they are.
    """
    names = {key.node_name for key in targets}
    finalizers = {key.finalizer for key in targets}
    pods = await client.list(kinds.PODS, label_selector=f"{keys.HAS_FINALIZER}=true")
    freed = 0

    def of_targets(pod: Object) -> Object | None:
        return feedback.without_finalizers(pod, lambda name: name not in finalizers)

    for pod in pods:
        freed += await _free(client, pod, of_targets)

    if freed:
        report.say(f"removed finalizers from {counted(freed, 'pod')}")

    for name in sorted(names):
        for pod in await client.list(kinds.PODS, field_selector=f"spec.nodeName={name}"):
            await client.discard(kinds.PODS, pod, grace=0)

        try:
            node = await client.get(kinds.NODES, name)
        except (NotFound, Denied):
            continue

        if target_key.of_node(node) is not None:
            await remove(client, kinds.NODES, node, report)


async def _free(client: Client, pod: Object, freed: Callable[[Object], Object | None]) -> bool:
    """Patch a pod as `freed` says, also if it changes meanwhile; tell whether that was needed."""
    if (body := freed(pod)) is None:
        return False

    name, namespace = objects.name(pod), objects.namespace(pod)
    try:
        await client.patch(kinds.PODS, name, body, namespace)
    except NotFound:
        return False
    except Conflict:  # it has changed since: try its newer state
        try:
            newer = await client.get(kinds.PODS, name, namespace)
        except NotFound:
            return False

        return await _free(client, newer, freed)

    return True


async def forget_proxies(client: Client, report: RemovalReport) -> None:
    """Remove the finalizers from all proxy pods, and delete those that are not bound.

    A pending proxy with a controller is deleted, so that its replacement is an ordinary pod. One
    without a controller stays pending and is reported.
    """
    for pod in await client.list(kinds.PODS, field_selector=keys.PROXY_PODS):
        await _free(client, pod, feedback.without_finalizers)
        if objects.node_name(pod):
            continue

        if objects.controller_reference(pod) is not None:
            await client.discard(kinds.PODS, pod)
        else:
            report.left.append(
                f"pod/{objects.key(pod)} is waiting for a target and has no controller to "
                f"recreate it: delete it, and create it again without {keys.ELECT}"
            )
