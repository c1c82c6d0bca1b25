"""Builds the page of policies: what each placement policy plans and what came of it, and how the
override policies stand. Pure.

Names, messages and numbers are those of the objects: whoever may write a policy chooses them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vnode.dashboard import page, tables
from vnode.dashboard.markup import Content, Markup, join, tag
from vnode.dashboard.page import Paths
from vnode.dashboard.tables import PageCell, PageColumn, PageRow
from vnode.dashboard.view_model import ViewModel
from vnode.insight.policies import ShownOverride, ShownPolicy, ShownWorkload

MAX_ROWS: Final = 300
"""Rows for clusters of workloads, over all policies."""

_COLUMNS: Final = (
    PageColumn("Workload", names_row=True),
    PageColumn("Replicas", is_number=True),
    PageColumn("Target"),
    *(PageColumn(title, is_number=True) for title in ("Planned", "Running", "Waiting", "Unplaced")),
)
_OVERRIDES: Final = (
    PageColumn("Policy", names_row=True),
    PageColumn("Rules", is_number=True),
    PageColumn("State"),
)
_NO_PLAN: Final = "The policy plans no numbers; ordinary scoring chooses."


def build(view: ViewModel, paths: Paths) -> bytes:
    """Build the page."""
    live = join([page.notices(view.policy_notices), *_placement(view), _overrides(view.overrides)])
    return page.frame(paths, "Policies", live, cluster=view.cluster, now=view.now, here="Policies")


def _placement(view: ViewModel) -> Iterator[Markup]:
    if not view.policies:
        nothing = page.empty("No placement policies: each pod goes to the best target.")
        yield tag("section", nothing, class_="card", aria_label="Placement policies")

    room = MAX_ROWS
    for policy in view.policies:
        rows = list(_rows(view, policy))
        yield _policy(policy, rows[:room], len(rows[room:]))
        room = max(0, room - len(rows))


def _policy(policy: ShownPolicy, rows: list[PageRow], left_out: int) -> Markup:
    title = f"{policy.namespace}/{policy.name}" if policy.namespace else policy.name
    tone = "good" if policy.is_accepted else "bad"
    state = policy.reason or ("Accepted" if policy.is_accepted else "Invalid")
    why: Content = None
    if not policy.is_accepted:
        why = tag("p", f"Not in force: {policy.message}", class_="verdict")

    return tag(
        "section",
        tag("h2", title, " ", page.badge(policy.mode, "bound"), " ", page.badge(state, tone)),
        why,
        tables.build(_COLUMNS, rows) if rows else page.empty("No pods are placed by it."),
        _more(policy, left_out),
        class_="card",
        aria_label=title,
    )


def _more(policy: ShownPolicy, left_out: int) -> Content:
    unlisted = policy.workload_count - len(policy.workloads)
    parts = [f"{unlisted} more workloads"] if unlisted > 0 else []
    parts += [f"{left_out} more rows"] if left_out else []
    return page.empty(", ".join(parts)) if parts else None


def _rows(view: ViewModel, policy: ShownPolicy) -> Iterator[PageRow]:
    for workload in policy.workloads:
        yield from _workload(view, workload)


def _workload(view: ViewModel, workload: ShownWorkload) -> Iterator[PageRow]:
    """Yield a row for each target; the first one says which workload it is."""
    first = True
    for part in workload.clusters:
        unmet = part.planned is not None and part.running < part.planned
        planned = PageCell(
            "-" if part.planned is None else str(part.planned),
            tone="busy" if unmet else None,
            hint=_NO_PLAN if part.planned is None else None,
        )
        yield PageRow(
            (
                workload.workload if first else "",
                str(workload.replicas) if first else "",
                view.target_name(part.cluster),
                planned,
                str(part.running),
                str(part.waiting),
                str(workload.unplaced) if first and workload.unplaced else "",
            )
        )
        first = False


def _overrides(found: tuple[ShownOverride, ...]) -> Content:
    if not found:
        return None

    rest = len(found) - MAX_ROWS
    return tag(
        "section",
        tag("h2", "Override policies", id="overrides"),
        tables.build(_OVERRIDES, map(_override, found[:MAX_ROWS])),
        page.empty(f"{rest} more policies") if rest > 0 else None,
        class_="card",
        aria_labelledby="overrides",
    )


def _override(each: ShownOverride) -> PageRow:
    state = page.badge(each.state, "good" if each.is_good else "bad")
    why = None if each.is_good else tag("span", each.message, class_="said")
    return PageRow((each.name, str(each.rules), join([state, why])))
