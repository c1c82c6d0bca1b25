"""Builds the page of pods: a form to filter them, and a row with a link for each. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from vnode.api import objects
from vnode.dashboard import page, tables, view_model
from vnode.dashboard.markup import Markup, join, tag
from vnode.dashboard.page import Paths
from vnode.dashboard.stages import Stage, StagedPod
from vnode.dashboard.tables import PageColumn, PageRow
from vnode.dashboard.view_model import ViewModel
from vnode.insight import status_text

MAX_ROWS: Final = 300
"""Rows of one page: more would be slow to draw, and nobody reads them."""

COLUMNS: Final = (
    PageColumn("Namespace"),
    PageColumn("Name", names_row=True),
    PageColumn("Stage"),
    PageColumn("Status"),
    PageColumn("Target"),
    PageColumn("Ready", is_number=True),
    PageColumn("Age", is_number=True),
)
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
        tag("a", "Clear", href=paths.pods()) if any(filters.values()) else None,
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
        why = "No pods match." if any(filters.values()) else "No pods run in targets yet. "
        how = None if any(filters.values()) else tag("span", "Annotate one to elect it.")
        return page.empty(why, how)

    rest = len(found) - MAX_ROWS
    table = of_pods(view, paths, found[:MAX_ROWS])
    more = page.empty(f"{rest} more: narrow them down.") if rest > 0 else None
    return tag("section", table, more, class_="card", aria_label="Pods")


def of_pods(view: ViewModel, paths: Paths, pods: list[StagedPod]) -> Markup:
    """Build the table of these pods."""
    return tables.build(COLUMNS, (_row(view, paths, staged) for staged in pods), "pods")


def _row(view: ViewModel, paths: Paths, staged: StagedPod) -> PageRow:
    pod = staged.pod
    namespace, name = objects.namespace(pod), objects.name(pod)
    where = ", ".join(view.target_name(node) for node in staged.asked or (staged.node,) if node)
    why = tag("span", staged.why, class_="said") if staged.why else None
    return PageRow(
        (
            namespace,
            tag("a", name, href=paths.pod(namespace, name), id=f"pod-{namespace}/{name}"),
            page.badge(staged.stage.title, staged.stage.value),
            join([staged.status, why]),
            where + (" ?" if staged.asked else ""),
            status_text.ready(pod),
            status_text.age(objects.created(pod), view.now),
        )
    )
