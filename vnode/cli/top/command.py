"""Defines the flags of `vnode top`, and runs it."""

from __future__ import annotations

from pathlib import Path

import click

from vnode.api.clock import SystemClock
from vnode.cli import cluster_options, tables, terminal
from vnode.cli.access import Access
from vnode.cli.get import resources
from vnode.cli.main import run
from vnode.cli.suggestions import OneOf
from vnode.cli.top import accelerators
from vnode.cli.top.screens import Screen


class _TopResource(OneOf):
    """Takes the same short and singular names as `vnode get`."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(resources.ALIASES.get(value, value), param, ctx)


def command() -> click.Command:
    """Return the click command."""

    @click.command("top")
    @click.argument("resource", type=_TopResource(("targets", "pods", "accelerators")))
    @cluster_options.options
    @cluster_options.all_namespaces
    @click.option("--once", is_flag=True, help="Print one table, also on a terminal.")
    @tables.output_option("table", "json")
    def top_command(
        resource: str,
        kubeconfig: Path | None,
        context: str | None,
        namespace: str | None,
        all_namespaces: bool,
        once: bool,
        output: str,
    ) -> None:
        """Show what targets offer and their pods ask for and use.

        On a terminal the table stays, and follows what happens; end it with Ctrl-C.

        With accelerators, show once for each target and model how many there are, how many are
        free, how many of these are on one node, and how many pods of 1, 2, 4 or 8 fit. Asks the
        targets with the credentials of their own Secrets.

        \b
        Where are eight free H100 on one node?
          vnode top accelerators -A
          vnode top accelerators -A -o json |
            jq '.items[] | select(.model | test("H100")) | select(.largestNode >= 8)'
        """
        of_accelerators = resource == "accelerators"
        live = terminal.is_terminal() and not once
        if output != "table" and not of_accelerators:
            raise click.UsageError(f"-o {output} is for accelerators: vnode get {resource} has it")

        async def show() -> None:
            async with Access(kubeconfig, context).client() as client:
                scope = cluster_options.scope(client, namespace, all_namespaces)
                if of_accelerators:
                    found = await accelerators.read(client, scope, SystemClock().now())
                    terminal.say(
                        found.text()
                        if output == "table"
                        else tables.document([found.as_object()], output, single=True)
                    )
                    return

                draw = terminal.redraw if live else terminal.say
                screen = Screen(client, scope, of_pods=resource == "pods", show=draw)
                await screen.run(live=live)

        run(show())

    return top_command
