"""Builds PodChaperons from proxy pods: what travels to a target, and under which names. No I/O.

The chaperon is made from the live proxy, which is what the source has admitted, but for its
constraints: they choose virtual nodes, and the user's own are in the manifest that the webhook
saved (`vnode.api.saved_manifest`). A pod that the webhook never saw is sent as it is, but for what
the API server here has computed and that of the target computes anew.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from vnode.api import (
    changeable,
    documents,
    keys,
    kinds,
    merged_selectors,
    names,
    objects,
    renaming,
    route,
    service_tokens,
    storage,
    virtual_constraints,
)
from vnode.api.errors import ConfigError
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.priorities import BY_NAME, PriorityMapping
from vnode.api.saved_manifest import SavedManifests
from vnode.pods import annotation_merge, downward_api, overriding, token_volumes, travel_size
from vnode.pods.overriding import Override
from vnode.runtime.links import Link

_CONSTRAINTS: Final = ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints")
# Annotations of ours that go with a pod that may be sent on: the next cluster needs them too.
_ONWARD: Final = (keys.FORWARD, keys.NO_PREFIX_LABEL_REGEXP)


def skips_reservation(proxy: Object) -> bool:
    """Return whether the pod reserves no place: by annotation, or since others have bound it."""
    if objects.spec(proxy).get("schedulerName") != keys.PROXY_SCHEDULER:
        return True

    return keys.NO_RESERVATION in objects.annotations(proxy)


def build(
    proxy: Object,
    identity: Identity,
    target: str,
    *,
    manifests: SavedManifests,
    allowed: bool,
    finalizer: bool,
    target_uid: str | None = None,
    source_api: tuple[str, str] | None = None,
    tokens: Collection[str] = (),
    override: Override | None = None,
    priorities: PriorityMapping = BY_NAME,
    storage_classes: Mapping[str, str] | None = None,
    preemption: str = "",
) -> Object:
    """Build the chaperon of a proxy pod.

    `target` is the key of the Target by which it goes, of which several may lead to one cluster;
    `target_uid` is that cluster's UID, if it is known. `allowed` lets the candidate be bound
    without further question; `finalizer` has the target's agent hold the chaperon until the
    delegate is gone, which only vnode does. With `source_api` (`TargetOptions.source_api`) the
    delegate has a token of the source, and one for each Secret in `tokens`. `override` has the last
    word on what travels. `preemption` is that of `vnode.pods.preemption.mark`. Raises ConfigError
    for annotations that cannot be read, for what is too much, for delegates that are not to be
    sent on, and if the override fails.
    """
    travel_size.check(proxy)
    pod = manifests.source_pod(proxy)
    travel_size.check(pod)
    plain = _travelling(pod, proxy, identity, target)
    priorities.translate(plain["spec"])
    storage.translate(plain["spec"], storage_classes or {})
    travelling = override.apply(plain) if override else plain
    renamed, annotations = objects.labels(travelling), dict(objects.annotations(travelling))
    spec = dict(objects.spec(travelling))
    _check_account(spec, objects.spec(plain), source_api)
    _finish_spec(spec, proxy, source_api, tokens)
    if not finalizer:  # their conditions cannot travel there; the source waits for them itself
        spec.pop("readinessGates", None)

    shown = downward_api.shown(proxy, pod, renamed)
    downward_api.rewrite(spec, shown)
    own = objects.annotations(plain)
    sent = _sent({k: v for k, v in annotations.items() if own.get(k) == v}, spec)
    if finalizer and sent:
        annotations[keys.SENT] = annotation_merge.text(sent)

    if override:
        annotations[keys.OVERRIDDEN] = overriding.note(plain, travelling)
        annotations |= override.record(plain, travelling)

    annotations |= _parent(proxy, identity, target)
    annotations |= _onward(proxy, identity, target_uid) | shown.made
    if source_api is not None and service_tokens.of(objects.spec(proxy), tokens):
        annotations[keys.TOKEN] = ",".join(sorted(tokens))

    annotations |= _permissions(preemption, allowed=allowed)
    own_labels = {**renamed, keys.PARENT_CLUSTER_UID: identity.uid}
    return _assembled(proxy, own_labels, annotations, spec, finalizer=finalizer)


def _permissions(preemption: str, *, allowed: bool) -> dict[str, str]:
    """Return what the source lets the candidate do, as annotations."""
    found = {keys.PREEMPTION: preemption} if preemption else {}
    return {**found, keys.IS_ALLOWED: "true"} if allowed else found


def _assembled(
    proxy: Object,
    labels: dict[str, str],
    annotations: dict[str, str],
    spec: Object,
    *,
    finalizer: bool,
) -> Object:
    metadata = {
        "name": names.chaperon(objects.name(proxy), objects.uid(proxy)),
        "namespace": objects.namespace(proxy),
        "labels": labels,
        "annotations": annotations,
    }
    if finalizer:
        metadata["finalizers"] = [keys.DELEGATE_FINALIZER]

    kind = kinds.POD_CHAPERONS
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}


def _parent(proxy: Object, identity: Identity, target: str) -> dict[str, str]:
    """Return the annotations that say of which pod it is, and by which Target it goes."""
    return {
        keys.PARENT_NAMESPACE: objects.namespace(proxy),
        keys.PARENT_NAME: objects.name(proxy),
        keys.PARENT_CLUSTER_UID: identity.uid,
        keys.TARGET: target,
    }


def _onward(proxy: Object, identity: Identity, target_uid: str | None) -> dict[str, str]:
    """Return the annotations of a pod that is sent on; none if it begins here and ends there."""
    own = objects.annotations(proxy)
    kept = _ONWARD if keys.FORWARD in own else ()
    annotations = {key: own[key] for key in kept if key in own} | downward_api.onward(proxy)
    if route.is_delegate(proxy):
        if objects.spec(proxy).get("schedulerName") != keys.PROXY_SCHEDULER:
            raise ConfigError(
                "the pod came from another cluster, and vnode did not choose its virtual node"
            )

        annotations[keys.PATH] = route.extend(proxy, identity.uid, target_uid)

    return annotations


def constraints(proxy: Object, manifests: SavedManifests) -> Object | None:
    """Return the part of a delegate's spec that chooses its node, before any override.

    None if that cannot be said: the pod may be sent on, or its manifest cannot be read.
    """
    if keys.FORWARD in objects.annotations(proxy):
        return None

    try:
        pod = manifests.source_pod(proxy)
    except ConfigError:
        return None

    if keys.USE_SPEC_CONSTRAINTS in objects.annotations(pod):
        return {}

    spec = objects.spec(pod)
    return {field: spec[field] for field in _CONSTRAINTS if field in spec}


def labels(proxy: Object, identity: Identity) -> dict[str, str]:
    """Return the labels of a chaperon, and so of the delegate.

    ConfigError for a bad expression, or too many labels or annotations.
    """
    travel_size.check_metadata(proxy)
    keep = renaming.kept_labels_of(proxy)
    renamed = renaming.renamed(renaming.travelling(objects.labels(proxy), keep), keep)
    renamed[keys.PARENT_UID] = objects.uid(proxy)
    renamed[keys.PARENT_CLUSTER_NAME] = identity.name
    return renamed


def labels_of_pod(chaperon: Object) -> dict[str, str]:
    """Return what `labels` has made; the rest a chaperon has from its beginning, or never."""
    return {k: v for k, v in objects.labels(chaperon).items() if k != keys.PARENT_CLUSTER_UID}


def lost_marks(
    candidate: Object, proxy: Object, identity: Identity, target: str
) -> dict[str, dict[str, str]]:
    """Return labels and annotations that a chaperon of ours lacks, and is known by; mostly none.

    Anybody in its cluster may take them off. Those that Admiralty made have other names, and fewer.
    """
    if objects.name(candidate) not in names.chaperons(objects.name(proxy), objects.uid(proxy)):
        return {}

    own = {keys.PARENT_UID: objects.uid(proxy), keys.PARENT_CLUSTER_NAME: identity.name}
    wanted = {"labels": own, "annotations": _parent(proxy, identity, target)}
    present = {"labels": objects.labels(candidate), "annotations": objects.annotations(candidate)}
    lost = {
        field: {k: v for k, v in marks.items() if present[field].get(k) != v}
        for field, marks in wanted.items()
    }
    return {field: marks for field, marks in lost.items() if marks}


def _sent(annotations: Object, spec: Object) -> Object:
    """Return a new chaperon's record: what it cannot hold itself, or a new pod cannot have."""
    sent: Object = {"annotations": dict(annotations)} if annotations else {}
    if names_ := changeable.view(spec).get(changeable.EPHEMERAL):
        sent[changeable.EPHEMERAL] = names_

    return sent


def is_held(chaperon: Object) -> bool:
    """Tell whether the target's vnode keeps the chaperon until the delegate is gone.

    It was made when the target ran vnode; the target may run Admiralty since.
    """
    return keys.DELEGATE_FINALIZER in objects.finalizers(chaperon)


def tokens_of(chaperon: Object) -> Collection[str]:
    """Return the Secrets for which a delegate has tokens of the source; none if far too many.

    Each Secret of a pod is looked for among them, and its target may write any.
    """
    text = objects.annotations(chaperon).get(keys.TOKEN, "")
    return frozenset(filter(None, text.split(","))) if len(text) <= documents.NOTE else frozenset()


def for_link(
    proxy: Object,
    identity: Identity,
    link: Link,
    *,
    manifests: SavedManifests,
    allowed: bool,
    tokens: Collection[str] = (),
    override: Override | None = None,
    preemption: str = "",
) -> Object:
    """Build the chaperon for the target behind a link, in its present state, by `build`."""
    return build(
        proxy,
        identity,
        str(link.target),
        manifests=manifests,
        allowed=allowed,
        finalizer=link.runs_vnode,
        target_uid=link.cluster_uid,
        source_api=link.options.source_api,
        tokens=tokens,
        override=override,
        priorities=link.priorities,
        storage_classes=link.options.storage_classes,
        preemption=preemption,
    )


def overridden(
    proxy: Object, identity: Identity, link: Link, manifests: SavedManifests, override: Override
) -> Object:
    """Return a proxy with the spec that its delegate is to have, for what it refers to."""
    travel_size.check(proxy)
    plain = _travelling(manifests.source_pod(proxy), proxy, identity, str(link.target))
    link.priorities.translate(plain["spec"])
    storage.translate(plain["spec"], link.options.storage_classes or {})
    kept = {f: v for f, v in objects.spec(proxy).items() if f in ("nodeName", "schedulerName")}
    return {**proxy, "spec": {**objects.spec(override.apply(plain)), **kept}}


def _travelling(pod: Object, proxy: Object, identity: Identity, target: str) -> Object:
    """Return what travels of a pod, as the target is to see it: what rules of policies change."""
    own = annotation_merge.own(proxy, pod)
    annotations = {k: v for k, v in own.items() if keys.travels(k)}
    metadata = {"labels": labels(proxy, identity), "annotations": annotations}
    return {"metadata": metadata, "spec": _spec(pod, proxy, identity, target)}


def _check_account(spec: Object, plain: Object, source_api: tuple[str, str] | None) -> None:
    account = spec.get("serviceAccountName")
    if source_api is not None and account != plain.get("serviceAccountName"):
        raise ConfigError(
            f"an override policy has the pod run as service account {account}, and the Target asks "
            f"for tokens of this cluster (annotation {keys.TOKENS}), which has them for the pod's "
            "own account only: take one of the two away"
        )


def _spec(pod: Object, proxy: Object, identity: Identity, target: str) -> Object:
    """Return the spec without what is about virtual nodes and the schedulers of the source."""
    node = virtual_constraints.virtual_node(*objects.split_key(target))
    unmerged = merged_selectors.without(objects.spec(pod), objects.labels(pod))
    spec = dict(virtual_constraints.without(unmerged, node))
    # The pod was held here until its gates were removed, and a scheduler here has chosen the node.
    # Its group is here, too: a target's scheduler would wait for that.
    for field in ("nodeName", "schedulingGates", "schedulingGroup"):
        spec.pop(field, None)

    if spec.get("runtimeClassName"):
        spec.pop("overhead", None)  # that of the target's RuntimeClass, which admission insists on

    if keys.USE_SPEC_CONSTRAINTS in objects.annotations(pod):
        for field in _CONSTRAINTS:
            spec.pop(field, None)

    keep = renaming.kept_labels_of(proxy)
    for field in ("affinity", "topologySpreadConstraints"):
        if field in spec:
            spec[field] = renaming.renamed_selectors(spec[field], keep, identity.name)

    return spec


def _finish_spec(
    spec: Object, proxy: Object, source_api: tuple[str, str] | None, tokens: Collection[str]
) -> None:
    """Put into a spec, the caller's own, what vnode itself needs and no policy decides."""
    if source_api is None:
        token_volumes.drop(spec)
    else:
        secret = names.token_secret(objects.name(proxy), objects.uid(proxy))
        token_volumes.replace(spec, secret, source_api, tokens)

    if not skips_reservation(proxy):
        spec["schedulerName"] = keys.CANDIDATE_SCHEDULER
    elif spec.get("schedulerName") == keys.PROXY_SCHEDULER:
        spec.pop("schedulerName")
