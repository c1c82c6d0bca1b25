"""Reads which accelerators targets have, and shows them: the table of `vnode top accelerators`.

Each target is asked for its ClusterSummary, with the credentials of its own Secret. Of one that
cannot be asked there is what its virtual node shows, and a line says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.cli import tables, terminal, wrapping
from vnode.cli.tables import Column
from vnode.insight import accelerators, target_clients, usable_targets
from vnode.insight.accelerators import SIZES, UNKNOWN, AcceleratorUse
from vnode.kube.client import Client
from vnode.targets import heartbeats, model


def _fits_column(place: int) -> Column:
    def cell(use: AcceleratorUse) -> str:
        return use.text(use.fits[place] if use.fits else None)

    return Column(f"FITS {SIZES[place]}", cell, short=f"x{SIZES[place]}")


COLUMNS: Final = (
    Column("TARGET", lambda use: use.target, names_row=True),
    Column("RESOURCE", lambda use: use.resource),
    Column("MODEL", lambda use: use.model),
    Column("TOTAL", lambda use: UNKNOWN if use.total is None else str(use.total)),
    Column("FREE", lambda use: use.text(use.free)),
    Column("LARGEST NODE", lambda use: use.text(use.largest), short="LARGEST"),
    *(_fits_column(place) for place in range(len(SIZES))),
    Column("MAY GROW", lambda use: f"+{use.growth}" if use.growth else "", short="GROW"),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What targets have, and what could not be read."""

    uses: tuple[AcceleratorUse, ...]
    notices: tuple[str, ...]

    def text(self) -> str:
        """Format it as a table."""
        width = terminal.width()
        notices = [line for each in self.notices for line in wrapping.wrapped(each, width)]
        if not self.uses:
            return "\n".join(["No target says that it has accelerators.", *notices])

        return "\n".join([*tables.lines(COLUMNS, self.uses), *notices])

    def as_object(self) -> Object:
        """Convert it to the object of `-o json`."""
        return {
            "apiVersion": "vnode.dev/v1alpha1",
            "kind": "AcceleratorList",
            "items": [_item(use) for use in self.uses],
            "notices": list(self.notices),
        }


def _item(use: AcceleratorUse) -> Object:
    numbers = {"total": use.total, "free": use.free, "largestNode": use.largest}
    fits = None if use.fits is None else dict(zip(map(str, SIZES), use.fits, strict=True))
    return {
        "target": use.target,
        "resource": use.resource,
        "model": use.model,
        **numbers,
        "fits": fits,
        "mayGrow": use.growth,
        "bound": use.bound,
    }


async def read(client: Client, namespace: str | None, now: datetime) -> Reading:
    """Ask the Targets of a namespace, None for all, and ClusterTargets."""
    targets = await usable_targets.covering(client, namespace)
    selector = f"{keys.PROVIDER_LABEL}={keys.PROVIDER}"
    nodes = {
        objects.name(node): node for node in await client.list(kinds.NODES, label_selector=selector)
    }
    uses, notices = [], []
    for target, summary, problem in await target_clients.summaries(client, targets):
        key = model.key_of(target)
        runs_vnode = heartbeats.is_recent(summary or {}, now)
        uses += accelerators.of_target(
            target, nodes.get(key.node_name), summary, runs_vnode=runs_vnode
        )
        if problem:
            notices.append(f"{key} was not asked what is free: {problem}")

    return Reading(tuple(uses), tuple(notices))
