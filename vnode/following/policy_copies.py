"""Builds the copy of a NetworkPolicy: pure.

It selects delegates of its own source and nobody else's pods: by their labels, renamed as theirs
are, and by those that name their source (`own_delegates`). So do peers in the policy's own
namespace. A peer in other namespaces may be a delegate of the source, or a pod of the target itself
such as its DNS or its ingress controller: both are meant, each by its labels. What a policy does
not allow in the source it does not allow in a target; the other way round, pods that stay in the
source are no peers there, but by their addresses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from vnode.api import keys, objects, renaming, selectors
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.patterns import LabelPattern
from vnode.api.selectors import Selector
from vnode.following import copies

DIRECTIONS: Final = (("ingress", "from"), ("egress", "to"))
"""The fields of a policy that have rules, and those of a rule that have peers."""


def policy(original: Object, identity: Identity, source: Mapping[str, str]) -> Object:
    """Build the copy of a NetworkPolicy; ConfigError for a bad expression.

    `source` are the labels by which delegates of this cluster are selected; at least by its name,
    so that the policy holds for no pod of the target itself.
    """
    keep = renaming.kept_labels_of(original)
    labels = {keys.PARENT_CLUSTER_NAME: identity.name, **source}
    spec = dict(objects.spec(original))
    spec["podSelector"] = _of_delegates(spec.get("podSelector"), labels, keep)
    for rules, peers in DIRECTIONS:
        if spec.get(rules):
            spec[rules] = [_rule(rule, peers, labels, keep) for rule in spec[rules]]

    return {"metadata": copies.metadata(original, identity, spec=spec), "spec": spec}


def selected_labels(copy: Object) -> dict[str, str]:
    """Return the labels that a NetworkPolicy selects pods by."""
    return (objects.spec(copy).get("podSelector") or {}).get("matchLabels") or {}


def _rule(rule: Object, field: str, source: Mapping[str, str], keep: LabelPattern | None) -> Object:
    if not rule.get(field):
        return rule  # all peers

    peers = [made for peer in rule[field] for made in _peers(peer, source, keep)]
    return {**rule, field: peers}


def _peers(peer: Object, source: Mapping[str, str], keep: LabelPattern | None) -> Iterator[Object]:
    if "podSelector" not in peer:
        yield peer  # addresses, or all pods of some namespaces
        return

    if "namespaceSelector" in peer:
        yield peer

    yield {**peer, "podSelector": _of_delegates(peer["podSelector"], source, keep)}


def _of_delegates(
    selector: Object | None, source: Mapping[str, str], keep: LabelPattern | None
) -> Object:
    renamed = renaming.renamed_selectors({"labelSelector": selector or {}}, keep)["labelSelector"]
    return {**renamed, "matchLabels": {**(renamed.get("matchLabels") or {}), **source}}


def delegates(original: Object, identity: Identity) -> Selector:
    """Return what the copy of a NetworkPolicy selects where all delegates have all labels.

    ConfigError for a bad expression.
    """
    keep = renaming.kept_labels_of(original)
    labels = {keys.PARENT_CLUSTER_NAME: identity.name, **identity.labels}
    selector = _of_delegates(objects.spec(original).get("podSelector"), labels, keep)
    return selectors.from_label_selector(selector) or Selector()


def follows(policy: Object) -> bool:
    """Tell whether a NetworkPolicy may follow."""
    stays = keys.NO_FOLLOW in objects.annotations(policy)
    return not (stays or objects.is_terminating(policy))
