"""Defines `vnode migrate`: the steps from Admiralty to vnode that take more than installing it.

In a source, once vnode is installed: Admiralty's finalizers go, what was sent without a name of
this cluster is taken over, and pods that wait are signed. With `--back`, the way back is prepared.
The steps themselves are in `vnode.cli.migration`.
"""

from __future__ import annotations

from pathlib import Path

import click

from vnode.api.clock import SystemClock
from vnode.cli import cluster_options, durations, identity, main, manifests
from vnode.cli.access import Access
from vnode.cli.migration import left_pods, signing
from vnode.cli.migration.back import BackOptions, prepare
from vnode.cli.migration.taking_over import migrate
from vnode.cli.remove import admiralty_finalizers
from vnode.cli.remove.report import RemovalReport


async def _migrate(
    source: Access, cluster_name: str | None, namespace: str, report: RemovalReport
) -> None:
    async with source.client() as client:
        name = cluster_name or (await identity.identity(client)).name
        await admiralty_finalizers.release(client, report)
        await migrate(client, name, report)
        await signing.sign(client, namespace, report)


async def _go_back(
    cluster: Access, options: BackOptions, report: RemovalReport, *, watch: bool
) -> None:
    clock = SystemClock()
    async with cluster.client() as client:
        await prepare(client, options, report, clock)
        if watch:
            await left_pods.finish_all(client, clock, report)


def command() -> click.Command:
    """Return the click command."""

    @click.command("migrate")
    @cluster_options.options
    @click.option(
        "--cluster-name",
        help="The name of the agent.  [default: what the agent announces, else the UID of "
        "kube-system]  With --back: Admiralty's clusterName, if it is another.",
    )
    @click.option("--agent-namespace", default=manifests.NAMESPACE, show_default=True)
    @click.option("--back", is_flag=True, help="Prepare this cluster for Admiralty instead.")
    @click.option(
        "--watch",
        is_flag=True,
        help="With --back: stay, and delete for good the pods that hang because Admiralty has let "
        "them go within their grace period, until vnode has admitted none that is left.",
    )
    @durations.STEP
    def migrate_command(
        kubeconfig: Path | None,
        context: str | None,
        cluster_name: str | None,
        agent_namespace: str,
        back: bool,
        watch: bool,
        timeout: float,
    ) -> None:
        """Finish a source's migration from Admiralty, or prepare a cluster for the way back.

        Takes Admiralty's finalizers off, takes over what it sent without a name of this cluster,
        and signs the pods that it had admitted and that wait. With --back, of a cluster whose vnode
        was stopped: takes away what would wait for vnode. It can be run again. Exit code 3 if
        something is left to do.
        """
        if cluster_name:
            identity.check_name(cluster_name)

        if watch and not back:
            raise click.UsageError("--watch is for --back")

        cluster, report = Access(kubeconfig, context), RemovalReport()
        if back:
            options = BackOptions(agent_namespace, timeout, cluster_name)
            main.run(_go_back(cluster, options, report, watch=watch))
        else:
            main.run(_migrate(cluster, cluster_name, agent_namespace, report))

        report.finish()
        if report.left:
            raise SystemExit(main.PROBLEMS_FOUND)

    return migrate_command
