"""`vnode uncordon`: the command line."""

from __future__ import annotations

from pathlib import Path

import click

from vnode.cli import access, naming
from vnode.cli.access import Access
from vnode.cli.draining import cordons
from vnode.cli.main import run


def command() -> click.Command:
    """The click command."""

    @click.command("uncordon")
    @click.argument("target")
    @access.options
    @access.namespaced
    @click.option("--dry-run", is_flag=True, help="Only say what would be done.")
    def uncordon_command(
        target: str,
        kubeconfig: Path | None,
        context: str | None,
        namespace: str | None,
        dry_run: bool,
    ) -> None:
        """Send pods to a target again.

        TARGET is NAME, NAMESPACE/NAME, or the name of its virtual node.
        """

        async def do() -> None:
            async with Access(kubeconfig, context).client() as client:
                node = await naming.node(client, target, namespace)
                await cordons.set_cordon(client, node, False, click.echo, dry_run=dry_run)

        run(do())

    return uncordon_command
