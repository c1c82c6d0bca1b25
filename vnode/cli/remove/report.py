"""Prints what a removal deleted, and collects what it could not delete."""

from __future__ import annotations

from collections.abc import Callable, Sized
from dataclasses import dataclass, field

from vnode.api import objects
from vnode.api.errors import Conflict, Denied, NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.cli import terminal
from vnode.kube.client import Client


@dataclass(slots=True)
class RemovalReport:
    """Prints each step as it is done, and collects what is left behind."""

    say: Callable[[str], None] = terminal.say
    left: list[str] = field(default_factory=list)

    def finish(self) -> None:
        """Print what is left behind, if there is anything."""
        if self.left:
            self.say("\nLeft behind:")
            for line in self.left:
                self.say(f"  - {line}")


def counted(count: int | Sized, noun: str) -> str:
    """Return `1 pod` or `2 pods`."""
    number = count if isinstance(count, int) else len(count)
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


async def remove(client: Client, kind: Kind, obj: Object, report: RemovalReport) -> bool:
    """Delete exactly this object; report it and return False if it cannot be done."""
    what = f"{kind.kind.lower()}/{objects.key(obj)}"
    try:
        await client.delete(
            kind, objects.name(obj), objects.namespace(obj) or None, uid=objects.uid(obj) or None
        )
    except NotFound:
        return True
    except Denied as error:
        report.left.append(f"{what} not deleted: {error.message}")
        return False
    except Conflict:
        report.left.append(
            f"{what} not deleted: somebody has made it again meanwhile; keep them from it, as by "
            "taking it out of a repository, and run this again"
        )
        return False

    report.say(f"{what} deleted")
    return True


async def remove_named(
    client: Client, kind: Kind, name: str, report: RemovalReport, namespace: str | None = None
) -> None:
    """Delete the object of that name, if it exists."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    await remove(client, kind, {"metadata": metadata}, report)
