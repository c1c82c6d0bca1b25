"""Defines the flags of `vnode top`, and runs it."""

from __future__ import annotations

from pathlib import Path

import click

from vnode.cli import access, terminal
from vnode.cli.access import Access
from vnode.cli.get import views
from vnode.cli.main import run
from vnode.cli.top.screens import Screen


class _TopResource(click.Choice):  # type: ignore[type-arg]
    """Takes the same short and singular names as `vnode get`."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(super().convert(views.ALIASES.get(value, value), param, ctx))


def command() -> click.Command:
    """Return the click command."""

    @click.command("top")
    @click.argument("resource", type=_TopResource(("targets", "pods")))
    @access.options
    @access.all_namespaces
    @click.option("--once", is_flag=True, help="Print one table, also on a terminal.")
    def top_command(
        resource: str,
        kubeconfig: Path | None,
        context: str | None,
        namespace: str | None,
        all_namespaces: bool,
        once: bool,
    ) -> None:
        """Show resource targets offer and their pods ask for and use.

        On a terminal the table stays, and follows resource happens; end it with Ctrl-C.
        """
        live = terminal.is_terminal() and not once

        async def show() -> None:
            async with Access(kubeconfig, context).client() as client:
                scope = access.scope(client, namespace, all_namespaces)
                draw = terminal.redraw if live else terminal.say
                screen = Screen(client, scope, of_pods=resource == "pods", show=draw)
                await screen.run(live=live)

        run(show())

    return top_command
