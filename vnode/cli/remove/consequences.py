"""Says what a removal would do before it does it: what goes, and what becomes of pods.

`--dry-run` prints it and ends. Who types at a terminal is told it with the question whether to go
on, on the standard error: the output may go to a file. Scripts, where nobody can answer, go on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

from vnode.api import kinds, objects
from vnode.api.errors import Denied, NotFound
from vnode.api.objects import Object, Objects
from vnode.cli import tables, terminal
from vnode.cli.cluster_options import Command
from vnode.insight import status_text
from vnode.kube.client import Client
from vnode.targets import model


def options(function: Command) -> Command:
    """Add the options `--dry-run` and `--yes`."""
    for option in (
        click.option("-y", "--yes", is_flag=True, help="Do not ask."),
        click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing."),
    ):
        function = option(function)

    return function


def may_go_on(lines: Iterable[str], *, dry_run: bool, yes: bool) -> bool:
    """Print what would be done if somebody is to know it; tell whether to do it."""
    asks = not dry_run and not yes and sys.stdin.isatty()
    if dry_run or asks:
        for line in lines:
            terminal.say(line, err=asks)

    if dry_run:
        return False

    return not asks or click.confirm("Go on?", err=True)


async def of_targets(client: Client, targets: Sequence[Object], *, keep: bool = False) -> list[str]:
    """Return what becomes of Targets and their pods; `keep` leaves delegate pods running."""
    lines = []
    for target in targets:
        key = model.key_of(target)
        kind = tables.target_kind(target).kind
        lines.append(f"deletes {kind} {key} and node/{key.node_name}")
        pods = await _pods_on(client, key.node_name)
        lines += _of_pods(pods, key.name, keep=keep)

    return lines


async def of_delegates(client: Client, *, keep: bool) -> list[str]:
    """Return what becomes of the pods that sources run in a cluster."""
    chaperons = await _listed(client, kinds.POD_CHAPERONS)
    if not chaperons:
        return []

    kept = "go on running" if keep else "end; their sources start them elsewhere, if they can"
    return [f"{len(chaperons)} pods of sources run here: they {kept}"]


def _of_pods(pods: Objects, target: str, *, keep: bool) -> list[str]:
    running = [pod for pod in pods if not objects.is_finished(pod)]
    if not running:
        return []

    if keep:
        return [f"  {len(running)} pods run there: their containers go on, and nobody follows them"]

    alone = [pod for pod in running if objects.controller_reference(pod) is None]
    lines = [
        f"  {len(running)} pods run there: their containers end, and their owners replace them"
    ]
    if alone:
        names = ", ".join(objects.key(pod) for pod in alone[:3])
        lines.append(f"  {len(alone)} of them have no owner, and are lost: {names}")

    lines.append(f"  vnode drain {target} moves them before, and keeps disruption budgets")
    return lines


async def _pods_on(client: Client, node: str) -> Objects:
    pods = await _listed(client, kinds.PODS, field_selector=f"spec.nodeName={node}")
    return [pod for pod in pods if status_text.is_proxy(pod)]


async def _listed(client: Client, kind: kinds.Kind, **selection: Any) -> Objects:
    try:
        return await client.list(kind, **selection)
    except (NotFound, Denied):
        return []
