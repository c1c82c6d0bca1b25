"""Defines the flags of `vnode explain`, and runs it."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from vnode.api.clock import SystemClock
from vnode.cli import access, manifests, tables, terminal
from vnode.cli.access import Access
from vnode.cli.explain import rendering
from vnode.cli.main import run
from vnode.insight import collecting, story


def command() -> click.Command:
    """Return the click command."""

    @click.command("explain")
    @click.argument("arguments", metavar="[pod] NAME", nargs=-1, required=True)
    @access.options
    @access.namespaced
    @click.option(
        "--agent-namespace",
        default=manifests.NAMESPACE,
        show_default=True,
        help="The agents' own namespace.",
    )
    @tables.output_option("text", "json", "yaml")
    def explain_command(
        arguments: tuple[str, ...],
        kubeconfig: Path | None,
        context: str | None,
        namespace: str | None,
        agent_namespace: str,
        output: str,
    ) -> None:
        """Tell the whole story of a pod: what happened, how it stands, what to do.

        Asks the targets with the credentials of their own Secrets.
        """
        name = _name(arguments)

        async def explain() -> None:
            clock = SystemClock()
            async with Access(kubeconfig, context).client() as client:
                facts = await collecting.collect(
                    client,
                    name,
                    namespace or client.endpoint.namespace,
                    agent_namespace=agent_namespace,
                    clock=clock,
                )

            found = story.build(facts)
            if output == "text":
                width = shutil.get_terminal_size().columns
                terminal.say(rendering.as_text(found, facts.now, width))
            else:
                terminal.say(tables.document([rendering.as_object(found)], output, single=True))

        run(explain())

    return explain_command


def _name(arguments: tuple[str, ...]) -> str:
    """Parse `pod NAME`, `pod/NAME` or `NAME`."""
    *kind, name = [part for argument in arguments for part in argument.split("/")]
    if kind not in ([], ["pod"], ["pods"], ["po"]):
        raise click.UsageError(
            "usage: vnode explain pod NAME, with -n NAMESPACE for another namespace"
        )

    return name
