"""Defines the flags of `vnode explain`, and runs it."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from vnode.api.clock import SystemClock
from vnode.api.errors import ConfigError
from vnode.cli import cluster_options, completing, manifests, tables, terminal
from vnode.cli.access import Access
from vnode.cli.explain import rendering, several
from vnode.cli.main import run
from vnode.insight import named_pods


def command() -> click.Command:
    """Return the click command."""

    @click.command("explain")
    @click.argument(
        "arguments",
        metavar="[KIND] NAME...",
        nargs=-1,
        required=True,
        shell_complete=completing.pods,
    )
    @cluster_options.options
    @cluster_options.namespaced
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

        Of several pods, or of those of a Deployment, Job or other owner, tells how they stand and
        what to do. Asks the targets with the credentials of their own Secrets.
        """
        try:
            wanted = named_pods.parse(arguments)
        except ConfigError as error:
            raise click.UsageError(str(error)) from error

        async def explain() -> None:
            async with Access(kubeconfig, context).client() as client:
                found = await several.explain(
                    client,
                    wanted,
                    namespace or client.endpoint.namespace,
                    agent_namespace=agent_namespace,
                    clock=SystemClock(),
                )

            is_one = named_pods.is_one_pod(wanted)
            if output != "text":
                listed = [rendering.as_object(each) for each in found.stories]
                terminal.say(tables.document(listed, output, single=is_one))
            elif is_one:
                width = shutil.get_terminal_size().columns
                terminal.say(rendering.as_text(found.stories[0], found.now, width))
            else:
                terminal.say(rendering.as_summary(found.stories, found.notes))

        run(explain())

    return explain_command
