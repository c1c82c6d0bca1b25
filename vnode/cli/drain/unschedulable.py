"""Marks a virtual node as unschedulable, or schedulable again."""

from __future__ import annotations

from collections.abc import Callable

from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client


async def set_cordon(
    client: Client, node: Object, wanted: bool, say: Callable[[str], None], *, dry_run: bool = False
) -> None:
    """Cordon or uncordon the node, and print what was done, as kubectl does."""
    name, verb = objects.name(node), "cordoned" if wanted else "uncordoned"
    suffix = " (dry run)" if dry_run else ""
    if bool(objects.spec(node).get("unschedulable")) == wanted:
        say(f"node/{name} already {verb}{suffix}")
        return

    if not dry_run:
        body = {
            "metadata": {"uid": objects.uid(node)},
            "spec": {"unschedulable": True if wanted else None},
        }
        await client.patch(kinds.NODES, name, body)

    say(f"node/{name} {verb}{suffix}")
