"""What a removal did, and what it had to leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import click

from vnode.api import objects
from vnode.api.errors import Denied, NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client


@dataclass(slots=True)
class Report:
    """Says what was done as it is done; gathers what is left."""

    say: Callable[[str], None] = click.echo
    left: list[str] = field(default_factory=list)

    def finish(self) -> None:
        """Print what is left, if anything is."""
        if self.left:
            self.say("\nLeft, and why:")
            for line in self.left:
                self.say(f"  - {line}")


async def remove(client: Client, kind: Kind, obj: Object, report: Report) -> bool:
    """Delete this very object and say so; False, and noted as left, if that is not allowed."""
    what = f"{kind.kind.lower()}/{objects.key(obj)}"
    try:
        await client.delete(
            kind, objects.name(obj), objects.namespace(obj) or None, uid=objects.uid(obj) or None
        )
    except NotFound:
        return True
    except Denied as error:
        report.left.append(f"{what}: {error.message}")
        return False

    report.say(f"{what} deleted")
    return True


async def remove_named(
    client: Client, kind: Kind, name: str, report: Report, namespace: str | None = None
) -> None:
    """Delete what has that name, if it is there."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    await remove(client, kind, {"metadata": metadata}, report)
