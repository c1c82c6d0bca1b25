"""Asks a target what a connection's credentials may do, and in which of its namespaces.

A ClusterSource that selects namespaces allows nothing but reading in all of them together; so the
namespaces that take part in the source are tried one by one.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.cli.doctor import examining
from vnode.cli.doctor.facts import ConnectionFacts
from vnode.kube import access_review
from vnode.kube.client import Client

# The permissions that the source's agent needs in a target; the role admiralty-source has them.
_RIGHTS: Final[tuple[tuple[str, Kind, str], ...]] = (
    *((verb, kinds.POD_CHAPERONS, "") for verb in ("create", "list", "watch", "patch", "delete")),
    ("list", kinds.PODS, ""),
    ("get", kinds.PODS, ""),
    ("get", kinds.PODS, "log"),
    ("create", kinds.PODS, "exec"),
    ("get", kinds.CLUSTER_SUMMARIES, ""),
)
_MOST: Final = 50  # namespaces that are tried


async def rights(remote: Client, namespace: str) -> dict[str, bool]:
    """Return which of the rights the credentials have in a namespace, "" for all."""
    found: dict[str, bool] = {}
    for verb, kind, subresource in _RIGHTS:
        allowed = await _may(remote, namespace, verb, kind, subresource)
        if allowed is not None:
            found[f"{verb} {kind.plural}" + (f"/{subresource}" if subresource else "")] = allowed

    return found


async def completed(facts: ConnectionFacts, source: Client, remote: Client) -> ConnectionFacts:
    """Return the facts with what is allowed by namespace, if not all is allowed everywhere."""
    is_selected = facts.rights.get("list podchaperons") and not all(facts.rights.values())
    if objects.namespace(facts.target) or not is_selected:
        return facts

    selector = "=".join(keys.WEBHOOK_NAMESPACE_LABEL)
    taking_part = await examining.or_none(source.list(kinds.NAMESPACES, label_selector=selector))
    # What one may have that is being deleted is of no use to anybody.
    lasting = (each for each in taking_part or () if not objects.is_terminating(each))
    granted = {
        name: bool(await _may(remote, name, "create", kinds.POD_CHAPERONS))
        for name in islice(sorted(map(objects.name, lasting)), _MOST)
    }
    first = next((name for name, allowed in granted.items() if allowed), None)
    there = facts.rights if first is None else await rights(remote, first)
    return replace(facts, granted=granted, rights=there)


async def _may(
    remote: Client, namespace: str, verb: str, kind: Kind, subresource: str = ""
) -> bool | None:
    """Tell whether the credentials may do that; None if the target does not say."""
    attributes = {
        "verb": verb,
        "group": kind.group,
        "resource": kind.plural,
        "subresource": subresource,
        "namespace": namespace if kind.namespaced else "",
    }
    return await examining.or_none(access_review.may(remote, attributes))
