"""Defines the flags of `vnode replace-target`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from vnode.cli import access, cluster_options, completing, manifests
from vnode.cli.access import Access
from vnode.cli.cluster_options import Command
from vnode.cli.connect.command import credentials
from vnode.cli.connect.connect import ConnectOptions, Side
from vnode.cli.drain import command as drains
from vnode.cli.drain.filters import DrainRules
from vnode.cli.main import run
from vnode.cli.remove.report import RemovalReport
from vnode.cli.replace.replace import ReplaceOptions, replace_target

_EVICTIONS_PER_MINUTE: Final = 60


def _clusters(function: Command) -> Command:
    """Add the options that name the new cluster, and the former one."""
    for option in (
        click.option(
            "--former-context",
            help="Context; the current one if not given.",
            shell_complete=completing.contexts,
        ),
        click.option(
            "--former",
            type=access.FILE,
            help="Kubeconfig of the former cluster, to delete the Source there.",
        ),
        click.option(
            "--target-context",
            help="Context; the current one if not given.",
            shell_complete=completing.contexts,
        ),
        click.option(
            "--target", type=access.FILE, help="Kubeconfig of the new cluster, as of vnode connect."
        ),
    ):
        function = option(function)

    return function


def _manner(function: Command) -> Command:
    """Add the options that say how pods leave the former cluster and go to the new one."""
    for option in (
        click.option("--keep-cordoned", is_flag=True, help="Send no pods to the new cluster yet."),
        drains.rate(_EVICTIONS_PER_MINUTE),
        drains.rules,
        click.option(
            "--lost",
            is_flag=True,
            help="The former cluster never comes back: owners replace the pods that ran there.",
        ),
    ):
        function = option(function)

    return function


def command() -> click.Command:
    """Return the click command."""

    @click.command("replace-target")
    @click.argument("name", metavar="TARGET", shell_complete=completing.targets)
    @cluster_options.source_options
    @cluster_options.namespaced
    @_clusters
    @_manner
    @credentials
    @click.option("--agent-namespace", default=manifests.NAMESPACE, show_default=True)
    @click.option("--dry-run", is_flag=True, help="Only say what would be done.")
    def replace_command(
        kubeconfig: Path | None,
        context: str | None,
        target: Path | None,
        target_context: str | None,
        former: Path | None,
        former_context: str | None,
        **given: Any,
    ) -> None:
        """Put another cluster in the place of a target, under the same name.

        Its virtual node is drained within disruption budgets, the new cluster is connected, and
        pods are sent there. With --lost, nothing is drained: the pods of the former cluster are
        deleted, for their owners to replace. Ended anywhere, it goes on when run again.
        """
        if target is None and target_context is None:
            raise click.UsageError(
                "--target FILE is needed, or --target-context of $KUBECONFIG: the new cluster"
            )

        options, connecting = _parse(**given)
        report = RemovalReport()
        run(
            replace_target(
                Side("source", Access(kubeconfig, context)),
                Side("target", Access(target, target_context)),
                Access(former, former_context) if former or former_context else None,
                options,
                connecting,
                report,
            )
        )
        report.finish()

    return replace_command


def _parse(
    *,
    name: str,
    namespace: str | None,
    lost: bool,
    force: bool,
    ignore_daemonsets: bool,
    delete_emptydir_data: bool,
    grace_period: float,
    timeout: float,
    per_minute: int,
    keep_cordoned: bool,
    agent_namespace: str,
    dry_run: bool,
    **connection: Any,
) -> tuple[ReplaceOptions, ConnectOptions]:
    """Return what the flags say of the replacement, and of the new connection."""
    options = ReplaceOptions(
        name=name,
        namespace=namespace,
        rules=DrainRules(force, ignore_daemonsets, delete_emptydir_data),
        grace=None if grace_period < 0 else int(grace_period),
        limit=timeout or None,
        per_minute=per_minute,
        agent_namespace=agent_namespace,
        lost=lost,
        keep_cordoned=keep_cordoned,
        dry_run=dry_run,
    )
    connecting = ConnectOptions(
        namespace=None,
        cluster_wide=False,
        name=None,
        agent_namespace=agent_namespace,
        enable_namespace=False,
        confirm_cluster=True,
        **connection,
    )
    return options, connecting
