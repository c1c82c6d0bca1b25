"""Defines the flags of `vnode cordon`, which `vnode uncordon` has as well."""

from __future__ import annotations

from pathlib import Path

import click

from vnode.cli import cluster_options, completing, naming, terminal
from vnode.cli.access import Access
from vnode.cli.drain import unschedulable
from vnode.cli.main import run


def command() -> click.Command:
    """Return the click command."""
    return make("cordon", True, "Send no more pods to a target; those that run there keep running.")


def make(name: str, wanted: bool, text: str) -> click.Command:
    """Make the click command of that name, which cordons a target's node, or uncordons it."""
    target_is = "TARGET is NAME, NAMESPACE/NAME, or the name of its virtual node."

    @click.command(name, help=f"{text}\n\n{target_is}")
    @click.argument("target", shell_complete=completing.targets)
    @cluster_options.options
    @cluster_options.namespaced
    @click.option("--dry-run", is_flag=True, help="Only say what would be done.")
    def cordon_command(
        target: str,
        kubeconfig: Path | None,
        context: str | None,
        namespace: str | None,
        dry_run: bool,
    ) -> None:
        async def do() -> None:
            async with Access(kubeconfig, context).client() as client:
                node = await naming.node(client, target, namespace)
                await unschedulable.set_cordon(client, node, wanted, terminal.say, dry_run=dry_run)

        run(do())

    return cordon_command
