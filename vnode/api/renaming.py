"""Renames labels for a target, out of reach of the target's own selectors.

Pure. The rule is Admiralty's: the domain of a key is replaced by Admiralty's prefix, except for
labels that the pod's annotation `no-prefix-label-regexp` matches by "key=value". It holds for
labels, for the selectors that are to find them, and for fields of a pod that show one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from vnode.api import constraint_size, keys, objects, patterns
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.patterns import LabelPattern

# Copied from the node when a pod is bound: for a proxy pod, from the virtual node.
NODE_LABELS: Final = "topology.kubernetes.io/"
MOST_MATCHED: Final = 100
"""Labels that are matched by an annotation, at each look at the pod; pods have some dozens."""
MOST_WORK: Final = 1_000_000
"""Instructions of the program times characters of all labels: at worst six milliseconds, if each
character takes each instruction. `^app=` has ten."""

MOST_WARNINGS: Final = 10
"""Of labels that a target would not have; API servers pass on 4 KiB of warnings."""

_SELECTOR_FIELDS: Final = ("labelSelector", "matchLabelKeys", "mismatchLabelKeys")


def kept_labels(regexp: str) -> LabelPattern | None:
    """Compile what matches the labels (`key=value`) that keep their keys; ConfigError if bad."""
    if not regexp:
        return None

    try:
        return patterns.compile_safe(regexp)
    except ConfigError as error:
        raise ConfigError(f"annotation {keys.NO_PREFIX_LABEL_REGEXP}: {error}") from error


def kept_labels_of(pod: Object) -> LabelPattern | None:
    """Compile the annotation of a pod as `kept_labels` does; ConfigError if it has many labels."""
    keep = kept_labels(objects.annotations(pod).get(keys.NO_PREFIX_LABEL_REGEXP, ""))
    if keep is None:
        return None

    if (count := len(objects.labels(pod))) > MOST_MATCHED:
        raise ConfigError(
            f"annotation {keys.NO_PREFIX_LABEL_REGEXP}: the pod has {count} labels: use "
            f"{MOST_MATCHED} at most with it"
        )

    characters = sum(len(key) + len(value) + 1 for key, value in objects.labels(pod).items())
    if keep.size * characters > MOST_WORK:
        raise ConfigError(
            f"annotation {keys.NO_PREFIX_LABEL_REGEXP}: it is too large for the pod's labels of "
            f"{characters} characters: name the start of a key, as in '^example.com/queue='"
        )

    spec = objects.spec(pod)
    selecting = [spec.get("affinity"), spec.get("topologySpreadConstraints")]
    if not constraint_size.has_at_most(constraint_size.VALUES, selecting):
        raise ConfigError(
            f"annotation {keys.NO_PREFIX_LABEL_REGEXP}: the pod's affinity and topology spread "
            f"constraints have over {constraint_size.VALUES} values: use that at most with it"
        )

    return keep


def renamed(own: dict[str, str], keep: LabelPattern | None) -> dict[str, str]:
    """Return labels as a delegate has them; of several with one new key the last one in order
    stays.

    The UID of a source is left out: what goes on from here has this cluster for its source.
    """
    return {
        label_key(key, value, keep): value
        for key, value in sorted(own.items())
        if key != keys.PARENT_CLUSTER_UID
    }


def travelling(own: dict[str, str], keep: LabelPattern | None) -> dict[str, str]:
    """Return those of a pod's labels that its delegate is to have.

    Labels of queues go only where the annotation names them, so that a Kueue of the target admits
    the candidate: Admiralty has the annotation for that.
    """
    return {
        key: value
        for key, value in own.items()
        if key != keys.HAS_FINALIZER
        and not key.startswith(NODE_LABELS)
        and (not keys.is_of_queue(key) or _is_kept(key, value, keep))
    }


def label_key(key: str, value: str, keep: LabelPattern | None) -> str:
    """Return the key of one label in a target."""
    return key if _is_kept(key, value, keep) else keys.PREFIX + key.rpartition("/")[2]


def _is_kept(key: str, value: str, keep: LabelPattern | None) -> bool:
    return keep is not None and keep.matches(f"{key}={value}")


def renamed_selectors(value: Any, keep: LabelPattern | None, source: str | None = None) -> Any:
    """Rename the label selectors of pods inside affinity and spread terms as the labels are.

    With the name of a `source`, selectors that only delegates can match select its own alone, since
    another source may have sent pods with the same labels.
    """
    if isinstance(value, list):
        return [renamed_selectors(item, keep, source) for item in value]

    if not isinstance(value, dict):
        return value

    return {
        field: _selector(field, inner, keep, source)
        if field in _SELECTOR_FIELDS
        else renamed_selectors(inner, keep, source)
        for field, inner in value.items()
    }


def _selector(field: str, value: Any, keep: LabelPattern | None, source: str | None) -> Any:
    if field != "labelSelector":
        return [label_key(key, "", keep) for key in value or ()]

    selector = dict(value or {})
    if labels := selector.get("matchLabels"):
        selector["matchLabels"] = renamed(labels, keep)

    if expressions := selector.get("matchExpressions"):
        selector["matchExpressions"] = [
            {**entry, "key": _expression_key(entry, keep)} for entry in expressions
        ]

    if source is not None and _is_of_delegates(selector):
        own = {keys.PARENT_CLUSTER_NAME: source}
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), **own}

    return selector


def _is_of_delegates(selector: Object) -> bool:
    """Tell whether a selector asks for a label that only delegates have."""
    expressions = selector.get("matchExpressions") or ()
    asking = [entry for entry in expressions if entry.get("operator") in ("In", "Exists")]
    asked = [*(selector.get("matchLabels") or ()), *(entry["key"] for entry in asking)]
    return any(key.startswith(keys.PREFIX) for key in asked)


def _expression_key(entry: Object, keep: LabelPattern | None) -> str:
    """Return the key of a selector's expression; kept if all labels that it names are."""
    values = entry.get("values") or [""]
    keys_ = {label_key(entry["key"], value, keep) for value in values}
    return keys_.pop() if len(keys_) == 1 else label_key(entry["key"], "", None)


def warnings(pod: Object) -> Iterator[str]:
    """Yield warnings, a few at most, to who creates a pod of which a target has not all labels."""
    yield from islice(_lost_labels(pod), MOST_WARNINGS)


def _lost_labels(pod: Object) -> Iterator[str]:
    keep = kept_labels_of(pod)
    own = travelling(objects.labels(pod), keep)
    winners: dict[str, str] = {}  # new key -> the label that stays
    for key, value in sorted(own.items()):
        new = label_key(key, value, keep)
        lost = winners.get(new)
        winners[new] = key
        if lost is not None and own[lost] != value:
            yield (
                f"labels {lost} and {key} are both {new} in a target, which has only the value of "
                f"the second: set annotation {keys.NO_PREFIX_LABEL_REGEXP}: '^{re.escape(lost)}='"
            )
