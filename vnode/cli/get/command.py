"""Defines the flags of `vnode get`, and runs it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from vnode.api import objects
from vnode.api.errors import Denied, NotFound
from vnode.api.objects import Objects
from vnode.cli import cluster_options, completing, suggestions, tables, terminal
from vnode.cli.access import Access
from vnode.cli.completing import Given
from vnode.cli.get import resources
from vnode.cli.get.listing import Listing, ListRequest
from vnode.cli.get.views import View
from vnode.cli.main import run
from vnode.kube.client import Client
from vnode.kube.watching import ListOptions


class _Resource(click.ParamType):  # type: ignore[type-arg]
    name = "resource"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> View:
        name = resources.ALIASES.get(value, value)
        if name not in resources.NAMES:
            hint = suggestions.did_you_mean(name, resources.NAMES)
            self.fail(f"{value!r} is none of {', '.join(resources.NAMES)}.{hint}", param, ctx)

        return resources.view(name)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        return [
            click.shell_completion.CompletionItem(name)
            for name in resources.NAMES
            if name.startswith(incomplete)
        ]


async def _names(client: Client, namespace: str, given: Given) -> list[str]:
    """Return the names of the resource that the line has, but of those that it has already."""
    view, given_names = given["resource"], given.get("names") or ()
    if view is None:  # a word that is no resource
        return []

    scope = cluster_options.scope(client, namespace, bool(given.get("all_namespaces")))
    found = [obj for each in view.selections(scope) for obj in await _listed(client, each)]
    names = [objects.name(obj) for obj in found if view.shows(obj)]
    return [name for name in names if name not in given_names]


async def _listed(client: Client, asked: ListOptions) -> Objects:
    with suppress(Denied, NotFound):  # what may not be read is left out
        return await client.list(
            asked.kind,
            asked.namespace,
            label_selector=asked.label_selector,
            field_selector=asked.field_selector,
        )

    return []


def command() -> click.Command:
    """Return the click command."""

    @click.command("get")
    @click.argument("resource", type=_Resource(), metavar="RESOURCE")
    @click.argument("names", nargs=-1, shell_complete=completing.from_cluster(_names))
    @cluster_options.options
    @cluster_options.all_namespaces
    @click.option("-l", "--selector", default="", help="Label selector.")
    @tables.output_option(*tables.FORMATS)
    @click.option("-w", "--watch", is_flag=True, help="Keep watching, and print each change.")
    def get_command(
        resource: View,
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

        RESOURCE is one of targets, targetsets, nodes, pods, sources, policies, overrides,
        rebalances and tokens.

        policies are PlacementPolicies, overrides are OverridePolicies, both with those of the
        cluster; rebalances say how far they are; tokens are AuthTokenRequests. targetsets are
        TargetSets and ClusterTargetSets: how many profiles each has found, and what it holds.
        """

        async def show() -> None:
            async with Access(kubeconfig, context).client() as client:
                scope = cluster_options.scope(client, namespace, all_namespaces)
                request = ListRequest(resource, names, scope, output, selector)
                listing = Listing(client, request, terminal.say)
                await (listing.follow() if watch else listing.once())

        run(show())

    return get_command
