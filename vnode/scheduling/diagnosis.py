"""Explains in one line why no target takes a pod, target by target; and parses that line again.

The line goes into the pod's PodScheduled condition and into an Event, as kube-scheduler's does:
`0/3 targets: c2: 0/4 nodes are available: 4 Insufficient cpu; c3: unreachable for 3m`. The owner of
the pod reads it, so it is about the targets of the pod's namespace and no others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from vnode.api import enumeration
from vnode.api.target_key import TargetKey

NAMES_SHOWN: Final = 3
EVENT_LIMIT: Final = 1024
"""Characters that the API allows in the note of an Event."""

LEFT_OUT: Final = "didn't match Pod's node affinity/selector"
"""What the filter of node affinity says of a target: the pod wants others."""

_MORE_REASONS: Final = re.compile(r"; and \d+ more reasons$")
_AGAIN: Final = re.compile(r"( not found)\. not found(?=[.,]|$)")
"""What kube-scheduler says of a claim that is missing: it is said twice."""

_NOISE: Final = re.compile(
    r"[.,]? ?(no new claims to deallocate|still not schedulable|preemption: \d+/\d+ nodes)"
    r".*?(?= \(|$)"
)
"""What kube-scheduler adds of preemption, and says again of each node: no reason of its own.

A note of ours may follow, in brackets."""


def labels(targets: Iterable[TargetKey]) -> dict[TargetKey, str]:
    """Return what each of a namespace's targets is called in messages.

    That is its name. A Target that shares its name with a ClusterTarget is `namespace/name`.
    """
    targets = tuple(targets)
    count = Counter(target.name for target in targets)
    return {key: key.name if count[key.name] == 1 else str(key) for key in targets}


def explain(reasons: Mapping[TargetKey, str], namespace: str, limit: int = EVENT_LIMIT) -> str:
    """Return one line made of the reason of each target that pods of the namespace may use.

    Targets with the same reason are grouped, at most three of them by name. Those that the pod's
    own node affinity leaves out give no reason where another is left. The line is cut to `limit`
    characters, if possible at the end of a reason, and then says how many there are besides.
    """
    if not reasons:
        return (
            f'0/0 targets: there is no Target in namespace "{namespace}" and no ClusterTarget: '
            f"an administrator makes one with vnode connect --namespace {namespace}"
        )[:limit]

    head = f"0/{len(reasons)} targets: "
    grouped: dict[str, list[str]] = {}
    for target, label in sorted(labels(reasons).items(), key=lambda item: item[1]):
        grouped.setdefault(tidy(reasons[target]), []).append(label)

    if len(grouped) > 1:
        grouped.pop(LEFT_OUT, None)

    parts = [
        f"{enumeration.some(targets, NAMES_SHOWN)}: {reason}" for reason, targets in grouped.items()
    ]
    for kept in range(len(parts), 0, -1):
        rest = f"; and {len(parts) - kept} more reasons" if kept < len(parts) else ""
        line = head + "; ".join(parts[:kept]) + rest
        if len(line) <= limit:
            return line

    return f"{head}{parts[0]}"[: limit - 3] + "..."


def split(message: str, known: Collection[str]) -> dict[str, str]:
    """Return the reason of each target that a line of `explain` is about, by the target's label.

    Reasons may contain anything, so only `known` labels begin a new one. Those that it counts and
    does not name are left out by the pod.
    """
    head, colon, text = message.partition(": ")
    if not known or not colon or not head.endswith(" targets"):
        return {}

    name = "|".join(re.escape(label) for label in sorted(known, key=len, reverse=True))
    listed = rf"((?:{name})(?:, (?:{name}))*(?: and \d+ more)?)"
    parts = re.split(rf"(?:^|; ){listed}: ", _MORE_REASONS.sub("", text))
    found: dict[str, str] = {}
    for names, reason in zip(parts[1::2], parts[2::2], strict=True):
        shown = re.sub(r" and \d+ more$", "", names)
        found.update(dict.fromkeys(shown.split(", "), reason))

    is_whole = text.count(" more: ") == 0 and not _MORE_REASONS.search(text)
    if found and is_whole and head == f"0/{len(known)} targets":
        found |= {label: LEFT_OUT for label in known if label not in found}

    return found


def tidy(reason: str) -> str:
    """Remove line breaks, noise and the final stop, which messages of schedulers have."""
    text = _AGAIN.sub(r"\1", " ".join(reason.split()))
    return (_NOISE.sub("", text) or text).rstrip(".") or "no reason given"
