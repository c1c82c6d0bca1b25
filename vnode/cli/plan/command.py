"""Defines the flags of `vnode plan`, and runs it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from vnode.api import objects
from vnode.api.clock import SystemClock
from vnode.cli import cluster_options, tables, terminal
from vnode.cli.access import Access
from vnode.cli.main import run
from vnode.cli.plan import planning, reading, rendering
from vnode.insight import status_text
from vnode.placement.policies import decoding
from vnode.placement.policies.move_fields import MOST_REPLICAS


def command() -> click.Command:
    """Return the click command."""

    @click.command("plan")
    @click.option(
        "-f", "--filename", required=True, metavar="POLICY", help="The file; - for stdin."
    )
    @click.option("--workload", default="", metavar="KIND/NAME", help="Only this one.")
    @click.option(
        "--replicas",
        type=click.IntRange(0, MOST_REPLICAS),
        help="Plan that many, in place of those that there are.",
    )
    @cluster_options.options
    @cluster_options.namespaced
    @tables.output_option("table", "json", "yaml")
    def plan_command(
        filename: str,
        workload: str,
        replicas: int | None,
        kubeconfig: Path | None,
        context: str | None,
        namespace: str | None,
        output: str,
    ) -> None:
        """Show what a placement policy would do now, cluster by cluster; apply nothing.

        A policy of the same name that is in the cluster is taken to be replaced by the one of the
        file.
        """

        async def show() -> None:
            async with Access(kubeconfig, context).client() as client:
                home = namespace or client.endpoint.namespace
                policy = await asyncio.to_thread(reading.read_policy, filename, home)
                # A policy of all namespaces is looked at in one of them, if that is asked for.
                is_narrow = (
                    objects.namespace(policy) or namespace or workload or replicas is not None
                )
                where = objects.namespace(policy) or home
                decoded, now = decoding.decode(policy), SystemClock().now()
                follows = decoded.decision.reference if decoded.decision is not None else None
                seen = where if is_narrow else None
                view = await reading.read_cluster(client, seen, follows)
                if decoded.by_capacity:
                    view = await reading.ask_targets(client, seen, view, now)

            request = planning.PlanRequest(policy, where, workload, replicas)
            made = planning.make(request, view, now.timestamp())
            targets = {objects.name(node): status_text.node_target(node) for node in view.nodes}
            if output == "table":
                terminal.say(rendering.as_text(made, targets))
            else:
                found = rendering.as_object(made, targets)
                terminal.say(tables.document([found], output, single=True))

        run(show())

    return plan_command
