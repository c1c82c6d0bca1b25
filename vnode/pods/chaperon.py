"""From a proxy pod to its PodChaperon: what travels to a target, and under which labels.

Pure. The chaperon is made from the pod as its user wrote it (the manifest that the webhook saved),
not from the proxy as it lives, whose constraints choose virtual nodes. What of a pod may change in
place is taken from the living proxy, though: labels, annotations of others, and what
`vnode.api.changeable` has. A pod that never met the webhook is its own manifest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from vnode.api import (
    changeable,
    documents,
    keys,
    kinds,
    names,
    objects,
    patterns,
    route,
    service_tokens,
)
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.pods import agreement, tokens
from vnode.runtime.links import Link

_CONSTRAINTS: Final = ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints")
# Copied from the node when a pod is bound: of a proxy, from the virtual node.
_NODE_LABELS: Final = "topology.kubernetes.io/"
# What of ours goes with a pod that may be sent on: the next cluster needs it too.
_ONWARD: Final = (keys.FORWARD, keys.NO_PREFIX_LABEL_REGEXP)
_SELECTOR_FIELDS: Final = ("labelSelector", "matchLabelKeys", "mismatchLabelKeys")


@dataclass(frozen=True, slots=True)
class Parent:
    """The cluster that a chaperon comes from."""

    cluster_name: str
    cluster_uid: str


def source_pod(proxy: Object) -> Object:
    """The pod as its user wrote it; ConfigError if the saved manifest is unreadable."""
    text = objects.annotations(proxy).get(keys.SOURCE_POD_MANIFEST)
    if text is None:
        return proxy

    try:
        pod = documents.parse(text)
    except ConfigError as error:
        raise ConfigError(f"annotation {keys.SOURCE_POD_MANIFEST} holds no pod: {error}") from error

    if not isinstance(pod, dict) or not isinstance(pod.get("spec"), dict):
        raise ConfigError(f"annotation {keys.SOURCE_POD_MANIFEST} holds no pod")

    return pod


def skips_reservation(proxy: Object) -> bool:
    """No candidate scheduler is asked: the pod asks for that, or somebody else has bound it."""
    if objects.spec(proxy).get("schedulerName") != keys.PROXY_SCHEDULER:
        return True

    return keys.NO_RESERVATION in objects.annotations(proxy)


def build(
    proxy: Object,
    parent: Parent,
    target: str,
    *,
    allowed: bool,
    finalizer: bool,
    there: str | None = None,
    source_api: tuple[str, str] | None = None,
) -> Object:
    """The chaperon of a proxy pod.

    `target` is the key of the Target by which it goes, of which several may lead to one cluster;
    `there` is that cluster's UID, if it is known.
    `allowed` lets the candidate be bound without further question; `finalizer` has the target's
    agent hold the chaperon until the delegate is gone, which only vnode does. With `source_api`
    (`Wishes.source_api`) the delegate has a token of the source. Raises ConfigError for annotations
    that cannot be read, and for delegates that are not to be sent on.
    """
    pod = source_pod(proxy)
    notes = agreement.foreign(proxy)
    spec = _spec(pod, proxy, _kept_labels_of(proxy), source_api)
    if not finalizer:  # their conditions cannot travel there; the source waits for them itself
        spec.pop("readinessGates", None)

    if finalizer and (sent := _sent(notes, spec)):
        notes[keys.SENT] = agreement.text(sent)

    notes[keys.PARENT_NAMESPACE] = objects.namespace(proxy)
    notes[keys.PARENT_NAME] = objects.name(proxy)
    notes[keys.PARENT_CLUSTER_UID] = parent.cluster_uid
    notes[keys.TARGET] = target
    notes |= _onward(proxy, parent, there)
    if source_api is not None and service_tokens.of(objects.spec(proxy)):
        notes[keys.TOKEN] = ""

    if allowed:
        notes[keys.IS_ALLOWED] = "true"

    chaperon: Object = {
        "apiVersion": kinds.POD_CHAPERONS.api_version,
        "kind": kinds.POD_CHAPERONS.kind,
        "metadata": {
            "name": names.chaperon(objects.name(proxy), objects.uid(proxy)),
            "namespace": objects.namespace(proxy),
            "labels": labels(proxy, parent),
            "annotations": notes,
        },
        "spec": spec,
    }
    if finalizer:
        chaperon["metadata"]["finalizers"] = [keys.DELEGATE_FINALIZER]

    return chaperon


def _onward(proxy: Object, parent: Parent, there: str | None) -> dict[str, str]:
    """What a pod says about its way: nothing, for one that begins here and ends in the target."""
    own = objects.annotations(proxy)
    kept = _ONWARD if keys.FORWARD in own else ()
    notes: dict[str, str] = {key: own[key] for key in kept if key in own}
    if route.is_delegate(proxy):
        if objects.spec(proxy).get("schedulerName") != keys.PROXY_SCHEDULER:
            raise ConfigError(
                "the pod came from another cluster, and vnode did not choose its virtual node"
            )

        notes[keys.PATH] = route.onward(proxy, parent.cluster_uid, there)

    return notes


def labels(proxy: Object, parent: Parent) -> dict[str, str]:
    """The labels of a chaperon, and so of the delegate; ConfigError for a bad expression."""
    own = {
        key: value
        for key, value in objects.labels(proxy).items()
        if key != keys.HAS_FINALIZER and not key.startswith(_NODE_LABELS)
    }
    renamed = reprefixed(own, _kept_labels_of(proxy))
    renamed[keys.PARENT_UID] = objects.uid(proxy)
    renamed[keys.PARENT_CLUSTER_NAME] = parent.cluster_name
    return renamed


def _sent(notes: Object, spec: Object) -> Object:
    """The record of a new chaperon: what it cannot say itself, or a new pod cannot have."""
    sent: Object = {"annotations": dict(notes)} if notes else {}
    if names_ := changeable.view(spec).get(changeable.EPHEMERAL):
        sent[changeable.EPHEMERAL] = names_

    return sent


def _kept_labels_of(proxy: Object) -> re.Pattern[str] | None:
    return kept_labels(objects.annotations(proxy).get(keys.NO_PREFIX_LABEL_REGEXP, ""))


def for_link(proxy: Object, parent: Parent, link: Link, *, allowed: bool) -> Object:
    """`build` for the target behind a link, as that one is now."""
    return build(
        proxy,
        parent,
        str(link.target),
        allowed=allowed,
        finalizer=link.runs_vnode,
        there=link.cluster_uid,
        source_api=link.wishes.source_api,
    )


def kept_labels(regexp: str) -> re.Pattern[str] | None:
    """The labels (`key=value`) that keep their keys; ConfigError for a bad expression."""
    if not regexp:
        return None

    try:
        return patterns.compile_safe(regexp)
    except ConfigError as error:
        raise ConfigError(f"annotation {keys.NO_PREFIX_LABEL_REGEXP}: {error}") from error


def reprefixed(own: dict[str, str], keep: re.Pattern[str] | None) -> dict[str, str]:
    """Labels as a delegate has them: out of reach of the selectors of the target's own objects."""
    return {_label_key(key, value, keep): value for key, value in sorted(own.items())}


def _label_key(key: str, value: str, keep: re.Pattern[str] | None) -> str:
    if keep is not None and keep.search(f"{key}={value}"):
        return key

    return keys.PREFIX + key.rpartition("/")[2]


def _spec(
    pod: Object,
    proxy: Object,
    keep: re.Pattern[str] | None,
    source_api: tuple[str, str] | None,
) -> Object:
    live = objects.spec(proxy)
    spec = changeable.overlaid(objects.spec(pod), live)
    for field in ("priority", "nodeName"):
        spec.pop(field, None)

    if not live.get("schedulingGates"):  # the pod was held here until they were lifted
        spec.pop("schedulingGates", None)

    if keys.USE_SPEC_CONSTRAINTS in objects.annotations(pod):
        for field in _CONSTRAINTS:
            spec.pop(field, None)

    if source_api is None:
        tokens.drop(spec)
    else:
        secret = names.token_secret(objects.name(proxy), objects.uid(proxy))
        tokens.replace(spec, secret, source_api)

    for field in ("affinity", "topologySpreadConstraints"):
        if field in spec:
            spec[field] = _reprefixed_selectors(spec[field], keep)

    if not skips_reservation(proxy):
        spec["schedulerName"] = keys.CANDIDATE_SCHEDULER
    elif spec.get("schedulerName") == keys.PROXY_SCHEDULER:
        spec.pop("schedulerName")

    return spec


def _reprefixed_selectors(value: Any, keep: re.Pattern[str] | None) -> Any:
    """The label selectors of pods inside affinity and spread terms, renamed as the labels are."""
    if isinstance(value, list):
        return [_reprefixed_selectors(item, keep) for item in value]

    if not isinstance(value, dict):
        return value

    return {
        field: _selector(field, inner, keep)
        if field in _SELECTOR_FIELDS
        else _reprefixed_selectors(inner, keep)
        for field, inner in value.items()
    }


def _selector(field: str, value: Any, keep: re.Pattern[str] | None) -> Any:
    if field != "labelSelector":
        return [_label_key(key, "", keep) for key in value or ()]

    selector = dict(value or {})
    if labels := selector.get("matchLabels"):
        selector["matchLabels"] = reprefixed(labels, keep)

    if expressions := selector.get("matchExpressions"):
        selector["matchExpressions"] = [
            {**entry, "key": _expression_key(entry, keep)} for entry in expressions
        ]

    return selector


def _expression_key(entry: Object, keep: re.Pattern[str] | None) -> str:
    """An expression keeps its key if the expression of the pod keeps all the values it names."""
    values = entry.get("values") or [""]
    keys_ = {_label_key(entry["key"], value, keep) for value in values}
    return keys_.pop() if len(keys_) == 1 else _label_key(entry["key"], "", None)
