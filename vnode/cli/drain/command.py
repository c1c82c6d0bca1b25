"""Defines the flags of `vnode drain`, and runs its steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from vnode.api import kinds, objects
from vnode.api.errors import ConfigError
from vnode.cli import cluster_options, completing, durations, naming, terminal
from vnode.cli.access import Access
from vnode.cli.cluster_options import Command
from vnode.cli.drain import eviction, filters, unschedulable
from vnode.cli.drain.filters import DrainRules
from vnode.cli.durations import DurationType
from vnode.cli.main import run
from vnode.kube.client import Client

_TIMEOUT = "Of the eviction of all: give up after; 0s: never."


async def drain(
    client: Client,
    name: str,
    namespace: str | None,
    rules: DrainRules,
    *,
    grace: int | None,
    limit: float | None,
    per_minute: int = 0,
    dry_run: bool,
) -> None:
    """Cordon the virtual node of a target, and evict its pods, so many a minute (0: at once)."""
    node = await naming.node(client, name, namespace)
    node_name = objects.name(node)
    await unschedulable.set_cordon(client, node, True, terminal.say, dry_run=dry_run)
    pods = await client.list(
        kinds.PODS, field_selector=f"spec.nodeName={node_name}", label_selector=rules.selector
    )
    chosen = filters.select(pods, rules)
    if chosen.errors:
        state = "dry run" if dry_run else "it stays cordoned"
        raise ConfigError(
            f"unable to drain node {node_name!r} ({state}): {'; '.join(chosen.errors)}"
        )

    for warning in chosen.warnings:
        terminal.say(f"Warning: {warning}", err=True)

    if dry_run:
        for pod in chosen.evicted:
            terminal.say(f"evicting pod {objects.key(pod)} (dry run)")
    elif chosen.evicted:
        await eviction.evict(
            client,
            node_name,
            chosen.evicted,
            partial(terminal.say, err=True),
            grace=grace,
            limit=limit,
            pause=60 / per_minute if per_minute else 0.0,
        )

    terminal.say(f"node/{node_name} drained{' (dry run)' if dry_run else ''}")


def rules(function: Command) -> Command:
    """Add the options that say which pods are evicted, and how."""
    for option in (
        click.option(
            "--timeout", type=DurationType(), default="0s", show_default=True, help=_TIMEOUT
        ),
        click.option(
            "--grace-period",
            type=DurationType(own=True),
            default=str(durations.OWN),
            show_default=True,
            help="In which each pod is to end; -1: its own.",
        ),
        click.option("--delete-emptydir-data", is_flag=True, help="Evict pods with emptyDir, too."),
        click.option("--ignore-daemonsets", is_flag=True, help="Leave pods of DaemonSets alone."),
        click.option("--force", is_flag=True, help="Evict pods without a controller, too."),
    ):
        function = option(function)

    return function


def rate(default: int) -> Callable[[Command], Command]:
    """Return what adds the option that says how many pods are evicted a minute."""
    return click.option(
        "--max-evictions-per-minute",
        "per_minute",
        type=click.IntRange(0),
        default=default,
        show_default=True,
        help="0: as many as disruption budgets allow.",
    )


def command() -> click.Command:
    """Return the click command."""

    @click.command("drain")
    @click.argument("target", shell_complete=completing.targets)
    @cluster_options.options
    @cluster_options.namespaced
    @rules
    @click.option("--pod-selector", default="", help="Label selector: only these pods.")
    @rate(0)
    @click.option("--dry-run", is_flag=True, help="Only say what would be done.")
    def drain_command(
        target: str,
        kubeconfig: Path | None,
        context: str | None,
        namespace: str | None,
        force: bool,
        ignore_daemonsets: bool,
        delete_emptydir_data: bool,
        grace_period: float,
        timeout: float,
        pod_selector: str,
        per_minute: int,
        dry_run: bool,
    ) -> None:
        """Cordon a target and evict its pods, for their owners to replace them elsewhere.

        Disruption budgets are respected. TARGET is NAME, NAMESPACE/NAME, or its virtual node.
        """
        limit = timeout or None
        chosen = DrainRules(force, ignore_daemonsets, delete_emptydir_data, pod_selector)

        async def do() -> None:
            async with Access(kubeconfig, context).client() as client:
                await drain(
                    client,
                    target,
                    namespace,
                    chosen,
                    grace=None if grace_period < 0 else int(grace_period),
                    limit=limit,
                    per_minute=per_minute,
                    dry_run=dry_run,
                )

        run(do())

    return drain_command
