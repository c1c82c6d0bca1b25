"""Builds the lists of what is wrong, and of what changed in the last hour. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from vnode.api import objects
from vnode.dashboard import page
from vnode.dashboard.changes import RecentChange, newest
from vnode.dashboard.markup import Content, Markup, join, tag
from vnode.dashboard.page import Paths
from vnode.dashboard.troubles import FoundTrouble

_MOST: Final = 12  # troubles that are listed
_MOST_CHANGES: Final = 12


def troubles(found: tuple[FoundTrouble, ...], paths: Paths, now: datetime) -> Content:
    """List what is wrong; None if nothing is."""
    if not found:
        return None

    rest = len(found) - _MOST
    more = page.empty(f"and {rest} more", "") if rest > 0 else None
    listed = (_trouble(each, paths, now) for each in found[:_MOST])
    return page.section("Needs attention", tag("ul", *listed, class_="troubles"), more)


def _trouble(each: FoundTrouble, paths: Paths, now: datetime) -> Markup:
    tone = "bad" if each.is_bad else "busy"
    cures = tag("ul", *(tag("li", cure) for cure in each.cures)) if each.cures else None
    return tag(
        "li",
        tag("p", page.badge(each.state, tone), " ", _about(each, paths), " ", _since(each, now)),
        tag("p", each.text, class_="why"),
        cures,
    )


def _about(each: FoundTrouble, paths: Paths) -> Content:
    if each.target:
        href = paths.target(each.target)
        return join(["Target ", tag("a", each.target, href=href, id=f"trouble-{each.target}")])

    if not each.pod:
        return None

    namespace, name = objects.split_key(each.pod)
    first = tag("a", each.pod, href=paths.pod(namespace, name), id=f"trouble-{each.pod}")
    if each.count < 2:
        return join(["Pod ", first])

    all_ = tag(
        "a",
        f"{each.count} pods of {namespace}",
        href=paths.pods(namespace=namespace, stage=each.stage),
        id=f"troubles-{each.pod}",
    )
    return join([all_, ", the first: ", first])


def _since(each: FoundTrouble, now: datetime) -> Content:
    ago = page.ago(each.since, now)
    return tag("span", ago, class_="when") if ago is not None else None


def changes(found: tuple[RecentChange, ...], paths: Paths, now: datetime) -> Markup:
    """List what changed in the last hour."""
    if not found:
        return page.section("Last hour", page.empty("No target has turned, and no pod was moved."))

    rest = len(found) - _MOST_CHANGES
    listed = (_change(each, paths, now) for each in newest(found, _MOST_CHANGES))
    more = page.empty(f"and {rest} more") if rest > 0 else None
    return page.section("Last hour", tag("ol", *listed, class_="changes"), more)


def _change(each: RecentChange, paths: Paths, now: datetime) -> Markup:
    if each.target:
        about = tag("a", each.target, href=paths.target(each.target))
    else:
        about = tag("a", each.pod, href=paths.pod(*objects.split_key(each.pod)))

    return tag(
        "li",
        tag("span", page.ago(objects.timestamp(each.at), now), class_="when"),
        tag(
            "span",
            page.badge(each.reason, "good" if each.is_good else "bad"),
            " target " if each.target else " pod ",
            about,
            tag("span", each.text, class_="said"),
        ),
    )
