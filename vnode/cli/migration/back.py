"""Prepares a cluster in which vnode was stopped for Admiralty to take over: `vnode migrate --back`.

`vnode uninstall` is no way back: it deletes Sources, and with them the accounts whose tokens
Admiralty's sources go on using, and the ClusterSummary, which says which cluster this is. Here only
that is taken away which waits for vnode, or which sources would go on believing: in a target, the
finalizer of chaperons and what vnode wrote on the summary; in a source, scheduling gates, and the
finalizer of chaperons in targets where no vnode is left to take it off.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError, NotFound, VnodeError
from vnode.api.identity import Identity
from vnode.api.objects import Object, Objects
from vnode.cli import identity, manifests
from vnode.cli.migration import left_pods
from vnode.cli.migration.taking_over import migrate
from vnode.cli.remove import source_side, target_side
from vnode.cli.remove.finalizer_removal import FinalizerRemover, remove_finalizers
from vnode.cli.remove.report import RemovalReport, counted, remove_named
from vnode.cli.remove.source_side import Ends
from vnode.insight.target_clients import Connect, connected
from vnode.kube.client import Client
from vnode.targets import finalizing, heartbeats, model

_KEPT: Final = (keys.CLUSTER_UID, keys.CLUSTER_NAME)
"""Which cluster it is remains true, whatever runs there."""
_STOP: Final = (
    "agent {holder} is running, and would undo this: stop it first (helm uninstall vnode -n "
    "{namespace}, which keeps the CRDs, or scale its Deployments to zero and wait 30 s)"
)


@dataclass(frozen=True, slots=True)
class BackOptions:
    """Holds the options of the command; `name` is that which Admiralty will give this cluster.

    None: the one that it has.
    """

    namespace: str
    seconds: float
    name: str | None = None


async def prepare(
    client: Client,
    options: BackOptions,
    report: RemovalReport,
    clock: Clock,
    connect: Connect = connected,
) -> None:
    """Prepare the cluster of `client`, as a target and as a source; what fails is `left`.

    It can be run again, also once Admiralty runs. ConfigError if an agent leads and goes on.
    """
    if holder := await source_side.leads_on(client, options.namespace, clock, report):
        raise ConfigError(_STOP.format(holder=holder, namespace=options.namespace))

    me = await identity.identity(client)
    await remove_named(client, kinds.MUTATING_WEBHOOKS, manifests.WEBHOOK, report)
    await _forget_vnode(client, report)
    await _release_own_chaperons(client, options.seconds, report)
    targets = await client.list(kinds.TARGETS) + await client.list(kinds.CLUSTER_TARGETS)
    for target in targets:
        await _release_target(client, target, me, report, clock, connect)

    if options.name is not None and options.name != me.name:
        await migrate(client, options.name, report, connect, former=me.name)

    await left_pods.open_gates(client, report)
    await left_pods.finish(client, clock, report)


async def _forget_vnode(client: Client, report: RemovalReport) -> None:
    """Take off the ClusterSummary what vnode wrote, which Admiralty would keep for ever."""
    with suppress(NotFound):
        summary = await client.get(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
        ours = [key for key in objects.annotations(summary) if key.startswith(keys.OWN_PREFIX)]
        if gone := {key: None for key in ours if key not in _KEPT}:
            body = {"metadata": {"annotations": gone}}
            await client.patch(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME, body)
            report.say(f"clustersummary/{keys.SUMMARY_NAME} no longer says that vnode runs here")


async def _release_own_chaperons(client: Client, seconds: float, report: RemovalReport) -> None:
    """Take our finalizer off all chaperons here, and see those to their end that were deleted."""
    remover = FinalizerRemover(client, detach=False)
    if late := await remover.run(seconds):
        report.left.append(
            f"{counted(late, 'PodChaperon')} still has finalizer {keys.DELEGATE_FINALIZER} (first: "
            f"{objects.key(late[0])}): run this again"
        )

    ends = Ends(seconds, keep=True)
    await target_side.end_terminating(client, led=False, ends=ends, report=report)


async def _release_target(
    client: Client,
    target: Object,
    me: Identity,
    report: RemovalReport,
    clock: Clock,
    connect: Connect,
) -> None:
    """Take our finalizer off chaperons of this cluster in a target that does not run vnode."""
    where = f"target {model.key_of(target)}"
    try:
        if finalizing.is_due(target):
            await finalizing.remove_finalizer(client, target)

        async with connect(client, target) as remote:
            summary: Object = {}
            with suppress(NotFound):
                summary = await remote.get(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)

            if heartbeats.is_recent(summary, clock.now()):
                report.say(f"{where}: runs vnode, which ends its delegate pods")
                return

            found = await _held(remote, objects.namespace(target) or None, me)
            for chaperon in found:
                await remove_finalizers(remote, chaperon)
    except VnodeError as error:
        report.left.append(f"{where}: {error}; run this again when it answers")
    else:
        if found:
            report.say(f"{where}: released {counted(found, 'PodChaperon')}")


async def _held(remote: Client, namespace: str | None, me: Identity) -> Objects:
    listed = await remote.list(kinds.POD_CHAPERONS, namespace, label_selector=me.selector)
    return [
        chaperon
        for chaperon in listed
        if me.owns(chaperon) and keys.DELEGATE_FINALIZER in objects.finalizers(chaperon)
    ]
