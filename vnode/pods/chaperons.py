"""Builds PodChaperons from proxy pods: what travels to a target, and under which names. No I/O.

The chaperon is made from the live proxy, which is what the source has admitted, but for its
constraints: they choose virtual nodes, and the user's own are in the manifest that the webhook
saved (`vnode.api.saved_manifest`). A pod that the webhook never saw is sent as it is, but for what
the API server here has computed and that of the target computes anew. Which of its spec goes is in
`chaperon_spec`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from vnode.api import (
    changeable,
    documents,
    keys,
    kinds,
    names,
    objects,
    renaming,
    route,
    service_tokens,
    storage,
)
from vnode.api.errors import ConfigError
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.priorities import BY_NAME, PriorityMapping
from vnode.api.saved_manifest import SavedManifests
from vnode.pods import annotation_merge, chaperon_spec, downward_api, overriding, travel_size
from vnode.pods.overriding import Override
from vnode.runtime.link import Link

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
    chaperon_spec.check_account(spec, objects.spec(plain), source_api)
    reserves = not skips_reservation(proxy)
    chaperon_spec.finish(spec, proxy, source_api, tokens, reserves=reserves)
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
    return {"metadata": metadata, "spec": chaperon_spec.travelling(pod, proxy, identity, target)}
