"""Builds the page of what is found by a name: targets, namespaces and pods. Pure.

It is searched in the view that all pages show, so that nobody finds what they may not read.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from vnode.api import objects
from vnode.dashboard import page, pods_page
from vnode.dashboard.markup import Content, Markup, join, tag
from vnode.dashboard.page import Paths
from vnode.dashboard.view_model import ViewModel

_MAX_LENGTH: Final = 256  # characters that are looked for
_MOST: Final = 50  # of each kind


def build(view: ViewModel, paths: Paths, given: str) -> bytes:
    """Build the page of what is found by the text of the form."""
    text = given[:_MAX_LENGTH].strip()
    live = join([page.notices(view.notices), *_found(view, paths, text.lower())])
    title = f"Search: {text}" if text else "Search"
    return page.frame(paths, title, live, cluster=view.cluster, now=view.now, here="", sought=text)


def _found(view: ViewModel, paths: Paths, text: str) -> list[Content]:
    if not text:
        nothing = page.empty("Write a part of the name of a pod, a target or a namespace.")
        return [tag("section", nothing, class_="card")]

    targets = [target for target in view.targets if text in target.name.lower()]
    counts = Counter(objects.namespace(staged.pod) for staged in view.pods)
    namespaces = sorted(name for name in counts if text in name.lower())
    pods = [staged for staged in view.pods if text in objects.key(staged.pod).lower()]
    if not (targets or namespaces or pods):
        return [tag("section", page.empty("Nothing that you may see has it."), class_="card")]

    of_targets = (
        tag(
            "li",
            tag("a", target.name, href=paths.target(target.name), id=f"found-{target.name}"),
            " ",
            page.badge(target.state, target.tone),
        )
        for target in targets[:_MOST]
    )
    of_namespaces = (
        tag(
            "li",
            tag("a", name, href=paths.pods(namespace=name), id=f"namespace-{name}"),
            f" {counts[name]} pods",
        )
        for name in namespaces[:_MOST]
    )
    table = pods_page.of_pods(view, paths, pods[:_MOST])
    return [
        _section("Targets", tag("ul", *of_targets), len(targets)),
        _section("Namespaces", tag("ul", *of_namespaces), len(namespaces)),
        _section("Pods", table, len(pods)),
    ]


def _section(title: str, listed: Markup, count: int) -> Content:
    """Make the section of one kind; None if nothing of it is found."""
    if not count:
        return None

    rest = count - _MOST
    more = page.empty(f"{rest} more: write more of the name.") if rest > 0 else None
    return page.section(title, listed, more)
