"""Defines the flags of `vnode connect`."""

from __future__ import annotations

from pathlib import Path

import click

from vnode.api import keys
from vnode.cli import access, completing, manifests
from vnode.cli.access import Access
from vnode.cli.cluster_options import Command
from vnode.cli.connect.connect import ConnectOptions, Side, connect
from vnode.cli.durations import DurationType
from vnode.cli.main import run
from vnode.targets import token_renewal


def clusters(function: Command) -> Command:
    """Add the options that name the two clusters."""
    for option in (
        click.option(
            "--target-context",
            help="Context; the current one if not given.",
            shell_complete=completing.contexts,
        ),
        click.option(
            "--source-context",
            help="Context; the current one if not given.",
            shell_complete=completing.contexts,
        ),
        click.option(
            "--target", type=access.FILE, help="Kubeconfig of the target; $KUBECONFIG by default."
        ),
        click.option(
            "--source", type=access.FILE, help="Kubeconfig of the source; $KUBECONFIG by default."
        ),
    ):
        function = option(function)

    return function


def credentials(function: Command) -> Command:
    """Add the options that describe what the source's agent connects with, and what it may do."""
    for option in (
        click.option(
            "--grant-all-namespaces",
            is_flag=True,
            help="The source may do everything in all namespaces of the target, kube-system and "
            "the agent's own among them: as good as cluster-admin there. Of ClusterSources.",
        ),
        click.option(
            "--target-namespaces",
            metavar="LABELS",
            help="In which namespaces of the target a ClusterSource may run pods; of a new one "
            f"{'='.join(keys.CLUSTER_SOURCES)}. An empty text is for all but those of Kubernetes "
            "and of the agents.",
        ),
        click.option(
            "--renew/--no-renew",
            default=True,
            show_default=True,
            help="Whether the source's agent may renew the token. Without, connect again before it "
            "ends.",
        ),
        click.option(
            "--token-lifetime",
            type=DurationType(token_renewal.SHORTEST),
            default="365d",
            show_default=True,
            help="Wanted life of the token; the target may give less. The source's agent renews it "
            "when four fifths of its life are over.",
        ),
        click.option(
            "--server",
            metavar="https://HOST:PORT",
            help="The target's API server as the source's agent reaches it, if that differs from "
            "what the kubeconfig says.",
        ),
        click.option(
            "--cluster-name",
            help="Of the Source and its service account; by default what the source's agent is "
            "called, which is the UID of its kube-system namespace if it is given no name.",
        ),
    ):
        function = option(function)

    return function


def command() -> click.Command:
    """Return the click command."""

    @click.command("connect")
    @clusters
    @click.option(
        "-n",
        "--namespace",
        help="Whose pods may go; by default that of the source's context.",
        shell_complete=completing.namespaces,
    )
    @click.option("--cluster-wide", is_flag=True, help="Pods of all namespaces may go.")
    @click.option("--name", help="Of the Target; by default the target kubeconfig's cluster name.")
    @credentials
    @click.option(
        "--agent-namespace",
        default=manifests.NAMESPACE,
        show_default=True,
        help="Of the agent; with --cluster-wide also of the service account and the Secret.",
    )
    @click.option(
        "--enable-namespace", is_flag=True, help="Also label the source's namespace, so pods go."
    )
    @click.option(
        "--confirm-cluster",
        is_flag=True,
        help="The Target is another cluster so far, and is to be this one: its pods are replaced.",
    )
    def connect_command(
        source: Path | None,
        target: Path | None,
        source_context: str | None,
        target_context: str | None,
        **given: object,
    ) -> None:
        """Let pods of the source cluster run in the target cluster. Doing it again is harmless."""
        options = ConnectOptions(**given)  # type: ignore[arg-type]
        check(options)
        run(connect(*sides(source, target, source_context, target_context), options))

    return connect_command


def sides(
    source: Path | None, target: Path | None, source_context: str | None, target_context: str | None
) -> tuple[Side, Side]:
    """Return source and target; raise UsageError if nothing names the target."""
    if target is None and target_context is None:
        raise click.UsageError("--target FILE is needed, or --target-context of $KUBECONFIG")

    return Side("source", Access(source, source_context)), Side(
        "target", Access(target, target_context)
    )


def check(options: ConnectOptions) -> None:
    """Raise UsageError for options that exclude each other."""
    if options.cluster_wide and options.namespace:
        raise click.UsageError("--namespace and --cluster-wide exclude each other")

    if not options.cluster_wide and options.chooses_namespaces:
        raise click.UsageError(
            "--target-namespaces and --grant-all-namespaces are for --cluster-wide: a Source holds "
            "in its own namespace only"
        )

    if options.grant_all_namespaces and options.target_namespaces is not None:
        raise click.UsageError("--target-namespaces and --grant-all-namespaces exclude each other")

    if options.cluster_wide and options.enable_namespace:
        raise click.UsageError("--enable-namespace needs one namespace, not --cluster-wide")
