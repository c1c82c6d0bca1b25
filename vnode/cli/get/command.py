"""Defines the flags of `vnode get`, and runs it."""

from __future__ import annotations

from pathlib import Path

import click

from vnode.cli import access, tables, terminal
from vnode.cli.access import Access
from vnode.cli.get import views
from vnode.cli.get.listing import Listing, ListRequest
from vnode.cli.main import run


class _Resource(click.ParamType):  # type: ignore[type-arg]
    name = "resource"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> views.View:
        name = views.ALIASES.get(value, value)
        if name not in views.VIEWS:
            self.fail(f"{value!r} is none of {', '.join(views.VIEWS)}", param, ctx)

        return views.VIEWS[name]

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        return [
            click.shell_completion.CompletionItem(name)
            for name in views.VIEWS
            if name.startswith(incomplete)
        ]


def command() -> click.Command:
    """Return the click command."""

    @click.command("get")
    @click.argument("resource", type=_Resource(), metavar="|".join(views.VIEWS))
    @click.argument("names", nargs=-1)
    @access.options
    @access.all_namespaces
    @click.option("-l", "--selector", default="", help="Label selector.")
    @tables.output_option(*tables.FORMATS)
    @click.option("-w", "--watch", is_flag=True, help="Keep watching, and print each change.")
    def get_command(
        resource: views.View,
        names: tuple[str, ...],
        kubeconfig: Path | None,
        context: str | None,
        namespace: str | None,
        all_namespaces: bool,
        selector: str,
        output: str,
        watch: bool,
    ) -> None:
        """Show targets, virtual nodes, proxy pods, policies, or (in a target) sources.

        policies are PlacementPolicies, overrides are OverridePolicies, both with those of the
        cluster; rebalances say how far they are; tokens are AuthTokenRequests. targetsets are
        TargetSets and ClusterTargetSets: how many profiles each has found, and what it holds.
        """

        async def show() -> None:
            async with Access(kubeconfig, context).client() as client:
                scope = access.scope(client, namespace, all_namespaces)
                request = ListRequest(resource, names, scope, output, selector)
                listing = Listing(client, request, terminal.say)
                await (listing.follow() if watch else listing.once())

        run(show())

    return get_command
