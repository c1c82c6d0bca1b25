"""Defines the flags of `vnode quickstart`, and says what to do next."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from vnode.api import keys
from vnode.cli import access, completing, manifests, terminal
from vnode.cli.connect import command as connecting
from vnode.cli.connect.connect import ConnectOptions
from vnode.cli.durations import DurationType
from vnode.cli.main import run
from vnode.cli.quickstart.helm import Chart
from vnode.cli.quickstart.steps import Quickstart, QuickstartOptions

_NEXT: Final = """
Send a pod to the target:
  kubectl{flags} run hello --image nginx --annotations {elect}=
Or all new pods of a namespace:
  kubectl{flags} annotate namespace NAMESPACE {elect}=
Watch them:
  vnode get pods{flags}       vnode explain hello{flags}       vnode dashboard{flags}
If something is wrong:
  vnode doctor{flags}"""


def charts(
    chart: str | None,
    image: str | None,
    values: tuple[Path, ...],
    source_values: tuple[Path, ...],
    target_values: tuple[Path, ...],
) -> dict[str, Chart]:
    """Return the chart of each role; none if none is named."""
    if chart is None:
        return {}

    settings = (f"controllerManager.image.repository={image}",) if image else ()
    return {
        "source": Chart(chart, (*values, *source_values), settings),
        "target": Chart(chart, (*values, *target_values), settings),
    }


def tell(line: str) -> None:
    """Print a step that is done."""
    done = terminal.styled("✓", terminal.GOOD)
    terminal.say(f"{done} {line}")


def begin(line: str) -> None:
    """Print what is waited for, on a terminal; scripts get what is done only."""
    if terminal.is_terminal():
        terminal.say(terminal.styled(f"... {line}", terminal.FAINT))


def command() -> click.Command:
    """Return the click command."""

    @click.command("quickstart")
    @connecting.clusters
    @click.option(
        "-n",
        "--namespace",
        help="Whose pods may go; by default that of the source's context.",
        shell_complete=completing.namespaces,
    )
    @click.option("--cluster-wide", is_flag=True, help="Pods of all namespaces may go.")
    @click.option("--name", help="Of the Target; by default the target kubeconfig's cluster name.")
    @click.option("--chart", help="Folder, package or address of vnode's chart.")
    @click.option("--image", help="Repository of the agent's image, without its tag.")
    @click.option("--values", type=access.FILE, multiple=True, help="Of both releases. Repeatable.")
    @click.option("--source-values", type=access.FILE, multiple=True, help="Of the source's.")
    @click.option("--target-values", type=access.FILE, multiple=True, help="Of the target's.")
    @connecting.credentials
    @click.option("--agent-namespace", default=manifests.NAMESPACE, show_default=True)
    @click.option(
        "--timeout",
        type=DurationType(1),
        default="2m",
        show_default=True,
        help="For each step that waits.",
    )
    def quickstart_command(
        source: Path | None,
        target: Path | None,
        source_context: str | None,
        target_context: str | None,
        chart: str | None,
        image: str | None,
        values: tuple[Path, ...],
        source_values: tuple[Path, ...],
        target_values: tuple[Path, ...],
        timeout: float,
        **given: object,
    ) -> None:
        """Install vnode in two clusters, connect them, and say what to do next.

        Needs administrators' kubeconfigs of both, and helm where vnode does not run yet. What is
        done already is left as it is: run it again after a step has failed.
        """
        connection = ConnectOptions(enable_namespace=False, confirm_cluster=False, **given)  # type: ignore[arg-type]
        connecting.check(connection)
        side, other = connecting.sides(source, target, source_context, target_context)
        found = charts(chart, image, values, source_values, target_values)
        options = QuickstartOptions(connection, found, timeout)
        run(Quickstart(side, other, options, tell, begin).run())
        terminal.say(_NEXT.format(flags=side.flags, elect=keys.ELECT))

    return quickstart_command
