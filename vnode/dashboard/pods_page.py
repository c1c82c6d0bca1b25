"""Builds the page of pods: a form to filter them, and a row with a link for each. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from vnode.api import objects
from vnode.dashboard import page, view_model
from vnode.dashboard.markup import Markup, join, tag
from vnode.dashboard.page import Paths
from vnode.dashboard.stages import Stage, StagedPod
from vnode.dashboard.view_model import ViewModel
from vnode.insight import status_text

MAX_ROWS: Final = 300
"""Rows of one page: more would be slow to draw, and nobody reads them."""

_HEADS: Final = ("Namespace", "Name", "Stage", "Status", "Target", "Ready", "Age")
_NUMBERS: Final = ("Ready", "Age")
_LABELS: Final = {view_model.NO_TARGET: "no target yet"}
FILTERS: Final = ("namespace", "target", "stage", "text")


def build(view: ViewModel, paths: Paths, given: Mapping[str, str]) -> bytes:
    """Build the page; `given` are the fields of the form."""
    filters = {name: given.get(name, "") for name in FILTERS}
    found = view_model.matching(view, **filters)
    live = join([page.notices(view.notices), _table(view, paths, found, filters)])
    return page.frame(
        paths,
        "Pods",
        live,
        cluster=view.cluster,
        now=view.now,
        here="Pods",
        above=_form(view, paths, filters),
    )


def _form(view: ViewModel, paths: Paths, filters: Mapping[str, str]) -> Markup:
    namespaces = sorted({objects.namespace(staged.pod) for staged in view.pods})
    choices = {
        "namespace": namespaces,
        "target": [*(target.name for target in view.targets), view_model.NO_TARGET],
        "stage": [stage.value for stage in Stage],
    }
    return tag(
        "form",
        *(_choice(name, options, filters[name]) for name, options in choices.items()),
        tag("label", "Name", tag("input", type="search", name="text", value=filters["text"])),
        tag("button", "Show", type="submit"),
        tag("a", "all", href=paths.pods()) if any(filters.values()) else None,
        action=paths.pods(),
        role="search",
        aria_label="Which pods",
    )


def _choice(name: str, options: list[str], chosen: str) -> Markup:
    shown = options if not chosen or chosen in options else [*options, chosen]
    return tag(
        "label",
        name.capitalize(),
        tag(
            "select",
            tag("option", "all", value=""),
            *(
                tag("option", _LABELS.get(text, text), value=text, selected=text == chosen)
                for text in shown
            ),
            name=name,
        ),
    )


def _table(
    view: ViewModel, paths: Paths, found: list[StagedPod], filters: Mapping[str, str]
) -> Markup:
    if not found:
        why = "No pods are like this." if any(filters.values()) else "No pods run in targets yet. "
        how = None if any(filters.values()) else tag("span", "Annotate one to elect it.")
        return page.empty(why, how)

    rest = len(found) - MAX_ROWS
    table = tag(
        "table",
        tag("thead", tag("tr", *map(_head, _HEADS))),
        tag("tbody", *(_row(view, paths, staged, view.now) for staged in found[:MAX_ROWS])),
        class_="pods",
    )
    more = tag("p", f"{rest} more: narrow them down.", class_="empty") if rest > 0 else None
    return tag("section", tag("div", table, class_="wide"), more, class_="card", aria_label="Pods")


def _head(title: str) -> Markup:
    return tag("th", title, scope="col", class_="number" if title in _NUMBERS else None)


def _row(view: ViewModel, paths: Paths, staged: StagedPod, now: datetime) -> Markup:
    pod = staged.pod
    namespace, name = objects.namespace(pod), objects.name(pod)
    where = ", ".join(view.target_name(node) for node in staged.asked or (staged.node,) if node)
    return tag(
        "tr",
        tag("td", namespace),
        tag(
            "th",
            tag("a", name, href=paths.pod(namespace, name), id=f"pod-{namespace}-{name}"),
            scope="row",
        ),
        tag("td", page.badge(staged.stage.title, staged.stage.value)),
        tag("td", staged.status, tag("span", staged.why, class_="said") if staged.why else None),
        tag("td", where + (" ?" if staged.asked else "")),
        tag("td", status_text.ready(pod), class_="number"),
        tag("td", status_text.age(objects.created(pod), now), class_="number"),
    )
