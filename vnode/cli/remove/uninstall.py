"""`vnode uninstall`: removes vnode from a cluster, be it a source, a target, or both.

It deletes the webhook first, so that no new proxy pods are created; then the source's side
(Targets, proxy pods, virtual nodes), the target's side (chaperons, Sources), and last what `vnode
install` created. It deletes the CRDs only with --crds, because all chaperons and their delegate
pods go with them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from vnode.api import keys, kinds, objects
from vnode.api.errors import NotFound
from vnode.api.objects import Objects
from vnode.cli import cluster_options, durations, manifests, released_rights, tables
from vnode.cli.access import Access
from vnode.cli.main import run
from vnode.cli.remove import (
    admiralty_finalizers,
    consequences,
    own_namespace,
    preconditions,
    source_side,
    target_side,
)
from vnode.cli.remove.copied_objects import remove_copies
from vnode.cli.remove.report import RemovalReport, remove, remove_named
from vnode.cli.remove.source_side import Ends
from vnode.cli.suggestions import OneOf
from vnode.cli.waiting import until_gone
from vnode.kube.client import Client
from vnode.nodes.candidate_scheduler import LEASE as SCHEDULER_LEASE
from vnode.runtime.leader import AGENT_LEASE as LEASE
from vnode.targetsets import spec as set_spec


@dataclass(frozen=True, slots=True)
class UninstallOptions:
    """Holds the options of the command."""

    namespace: str
    keep: bool
    crds: bool
    seconds: float


async def uninstall(client: Client, options: UninstallOptions, report: RemovalReport) -> None:
    """Remove all of vnode from the cluster of `client`; report what is left behind."""
    ends = Ends(options.seconds, keep=options.keep)
    targets = await preconditions.listed(client, kinds.TARGETS, kinds.CLUSTER_TARGETS)
    sources = await preconditions.listed(client, kinds.SOURCES, kinds.CLUSTER_SOURCES)
    holder = await preconditions.check(
        client, targets, options.namespace, keep=options.keep, crds=options.crds
    )
    if await _end_sets(client):
        targets = await preconditions.listed(client, kinds.TARGETS, kinds.CLUSTER_TARGETS)

    await remove_named(client, kinds.MUTATING_WEBHOOKS, "vnode", report)
    await source_side.end_targets(client, targets, led=bool(holder), ends=ends, report=report)
    await source_side.forget_proxies(client, report)
    await admiralty_finalizers.release(client, report)
    left = await _end_target_side(client, sources, options, ends, report, led=bool(holder))
    if options.crds and left:
        report.left.append(
            "CRDs kept: deleting them would delete delegate pods that are still running"
        )

    if holder:
        report.left.append(f"agent {holder} is still running, without permissions: stop it")

    await _remove_installation(client, options, report, crds=options.crds and not left)


async def _end_target_side(
    client: Client,
    sources: Objects,
    options: UninstallOptions,
    ends: Ends,
    report: RemovalReport,
    *,
    led: bool,
) -> int:
    """Remove the target's side; return how many delegate pods are left that are to end."""
    left = 0
    await target_side.close(client, report)
    # A source may have created a chaperon that the list does not show yet.
    is_used = sources or await preconditions.listed(client, kinds.POD_CHAPERONS)
    if is_used and options.keep:
        left = await target_side.keep_delegates(
            client, detach=options.crds, led=led, ends=ends, report=report
        )
    elif is_used:
        left = await target_side.end_delegates(client, led=led, ends=ends, report=report)

    if not options.keep:
        left += await target_side.end_pods_of_absent_owners(client, ends, report)

    await target_side.end_sources(client, sources, report)
    if not options.keep and not left:  # no source has write access any more
        await remove_copies(client, None, lambda _copy: True, report)

    return left


async def _end_sets(client: Client) -> int:
    """Delete the sets that would make deleted Targets again, but no Targets; count the sets."""
    count = 0
    for kind in (kinds.TARGET_SETS, kinds.CLUSTER_TARGET_SETS):
        for obj in await preconditions.listed(client, kind):
            count += 1
            with suppress(NotFound):
                name, namespace = objects.name(obj), objects.namespace(obj) or None
                await client.delete(kind, name, namespace, propagation="Orphan")

    return count


async def _remove_installation(
    client: Client, options: UninstallOptions, report: RemovalReport, *, crds: bool
) -> None:
    """Delete what `vnode install` created, and what the agents created for themselves."""
    namespace = options.namespace
    for name in own_namespace.OWN_SECRETS:
        await remove_named(client, kinds.SECRETS, name, report, namespace)

    for name in (LEASE, SCHEDULER_LEASE):
        await remove_named(client, kinds.LEASES, name, report, namespace)

    made = [
        *manifests.unwanted(allow_self_targets=False),
        *manifests.rbac(namespace),
        *manifests.policies(namespace),
    ]
    for obj in reversed(made):
        await remove(client, manifests.kind_of(obj), obj, report)

    for kind, obj in await released_rights.given(client):
        await released_rights.release(client, kind, obj)
        await remove(client, kind, obj, report)

    # Last, because an agent that still has its permissions would create it again. Without it,
    # sources no longer take this cluster for one that runs vnode, and put no finalizer on chaperons
    # that nobody here would remove.
    with suppress(NotFound):
        await client.delete(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)

    if crds:
        for crd in manifests.crds():
            await remove(client, kinds.CRDS, crd, report)

        selector = manifests.PART_OF
        left = await until_gone(client, kinds.CRDS, lambda _crd: True, 30, label_selector=selector)
        report.left += [f"crd/{objects.name(crd)} is still terminating" for crd in left]
    elif not options.crds:
        report.left.append("CRDs kept: --crds deletes them, too")

    await own_namespace.remove(client, namespace, report)


async def _consequences(client: Client, options: UninstallOptions) -> list[str]:
    """Return what an uninstallation would do; ConfigError if it would be refused."""
    targets = await preconditions.listed(client, kinds.TARGETS, kinds.CLUSTER_TARGETS)
    await preconditions.check(
        client, targets, options.namespace, keep=options.keep, crds=options.crds
    )
    sets = await preconditions.listed(client, kinds.TARGET_SETS, kinds.CLUSTER_TARGET_SETS)
    sources = await preconditions.listed(client, kinds.SOURCES, kinds.CLUSTER_SOURCES)
    lines = [f"deletes {set_spec.kind_of(each).kind} {objects.key(each)}" for each in sets]
    lines += await consequences.of_targets(client, targets, keep=options.keep)
    lines += await consequences.of_delegates(client, keep=options.keep)
    lines += [f"deletes {tables.source_kind(s).kind} {objects.key(s)}" for s in sources]
    lines.append("deletes the webhook, the agent's roles, policies, certificates and leases")
    if options.crds:
        lines.append("deletes the CRDs, and all objects of them")

    return lines + await own_namespace.consequences(client, options.namespace)


def command() -> click.Command:
    """Return the click command."""

    @click.command("uninstall")
    @cluster_options.options
    @click.option(
        "--delegates",
        type=OneOf(("delete", "keep")),
        required=True,
        help="Delete or keep delegate pods: of sources, here; of this cluster, in its targets.",
    )
    @click.option(
        "--crds", is_flag=True, help="Also delete the CRDs, and with them all their objects."
    )
    @click.option("--agent-namespace", default=manifests.NAMESPACE, show_default=True)
    @durations.STEP
    @consequences.options
    def uninstall_command(
        kubeconfig: Path | None,
        context: str | None,
        delegates: str,
        crds: bool,
        agent_namespace: str,
        timeout: float,
        dry_run: bool,
        yes: bool,
    ) -> None:
        """Remove vnode from a cluster. No finalizer stays, even if targets are unreachable.

        It works while the agent runs and after you have stopped it. With --delegates=keep, delegate
        pods keep running: those in this cluster stay with their PodChaperons or, with --crds, as
        ordinary pods. On a terminal it says what becomes of pods, and asks.
        """

        async def do() -> None:
            report = RemovalReport()
            async with Access(kubeconfig, context).client() as client:
                options = UninstallOptions(agent_namespace, delegates == "keep", crds, timeout)
                lines = await _consequences(client, options)
                if not consequences.may_go_on(lines, dry_run=dry_run, yes=yes):
                    return

                await uninstall(client, options, report)

            report.finish()

        run(do())

    return uninstall_command
