"""Changes of a proxy on their way to its delegate: what is new, and the patches for it. Pure.

The chaperon's labels and spec are what the source wants; beside them it carries a record
(`keys.SENT`) of what the source has changed since it made the chaperon, and of the annotations that
it sent. The delegate carries the record that was last carried out on it. Only the difference of the
two is done to the delegate, so that what the target's own admission made of it stays. A record that
does not differ costs no request.

The record is JSON: `annotations` and `conditions` (all that were sent), and as merge patches since
the beginning `labels` and what `changeable.view` has. A new pod has no ephemeral containers and no
conditions, so it begins without those in its record.
"""

from __future__ import annotations

from typing import Final

import msgspec

from vnode.api import changeable, keys, objects, pod_shape
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.pods import annotation_merge, chaperons, conditions, overriding

CONDITIONS: Final = "conditions"
_SPEC_FIELDS: Final = (*changeable.CONTAINERS, changeable.EPHEMERAL, "resources")
_NOT_FOR_NEW_PODS: Final = (changeable.EPHEMERAL, CONDITIONS)


class _Containers(msgspec.Struct, rename="camel"):
    containers: Object | None = None
    init_containers: Object | None = None


class _Images(msgspec.Struct, rename="camel"):
    containers: dict[str, str | None] | None = None
    init_containers: dict[str, str | None] | None = None


class _Record(msgspec.Struct, rename="camel"):
    annotations: dict[str, str | None] | None = None
    conditions: dict[str, Object | None] | None = None
    labels: dict[str, str | None] | None = None
    images: _Images | None = None
    resources: _Containers | None = None
    ephemeral_containers: Object | None = None


def record(obj: Object) -> Object:
    """Return what was sent (of a chaperon), or carried out (of a delegate)."""
    return annotation_merge.read(obj, keys.SENT)


def problem(chaperon: Object) -> str | None:
    """Return why the record of a chaperon, which another cluster wrote, is none; None if it is."""
    why = pod_shape.problem_of(record(chaperon), _Record)
    return None if why is None else f"annotation {keys.SENT}: {why}"


def is_news(proxy: Object, candidate: Object, identity: Identity) -> bool:
    """Return whether the proxy differs from its chaperon; both may be trimmed.

    ConfigError if the proxy's annotations cannot be read.
    """
    return bool(
        chaperons.labels(proxy, identity) != chaperons.labels_of_pod(overriding.undone(candidate))
        or settle(proxy, candidate).down
        or not agrees(proxy, candidate)
        or conditions_to_send(proxy, candidate) != sent_conditions(candidate)
    )


def agrees(proxy: Object, candidate: Object) -> bool:
    """Return whether the chaperon's spec agrees with the proxy's but for what policies changed.

    Both may be trimmed.
    """
    spec = objects.spec(overriding.undone(candidate))
    wanted = changeable.overlaid(spec, objects.spec(proxy))
    return wanted == spec or changeable.view(wanted) == changeable.view(spec)


def settle(
    proxy: Object, candidate: Object, built: Object | None = None
) -> annotation_merge.MergedAnnotations:
    """Decide which annotations go down to the chaperon, and which come up to the proxy.

    Those that policies override are left out, by the notes of the chaperon and of `built`.
    """
    sent, apart = _sent(candidate, "annotations"), set(overriding.own_annotations(candidate))
    apart.update(overriding.own_annotations(built or {}))
    return annotation_merge.settle(proxy, candidate, sent, apart)


def sent_conditions(candidate: Object) -> Object:
    """Return the conditions that the source has sent, by type."""
    return _sent(candidate, CONDITIONS)


def conditions_to_send(proxy: Object, candidate: Object) -> Object:
    """Return what `sent_conditions` must become."""
    return conditions.to_send(proxy, candidate, sent_conditions(candidate))


def _sent(obj: Object, part: str) -> Object:
    sent = record(obj).get(part)
    return sent if isinstance(sent, dict) else {}


def of_new_pod(candidate: Object) -> Object:
    """Return the record that a new delegate of this chaperon begins with."""
    return {k: v for k, v in record(candidate).items() if k not in _NOT_FOR_NEW_PODS}


def chaperon_patch(live: Object, built: Object, candidate: Object) -> Object:
    """Build the merge patch that brings a chaperon up to date with the proxy `live`; may be empty.

    `built` is the chaperon that would be made of that proxy now, by the same overrides.
    """
    settled = settle(live, candidate, built)
    labels = objects.merge_diff(chaperons.labels_of_pod(candidate), chaperons.labels_of_pod(built))
    spec = objects.spec(built)
    delta = objects.merge_diff(changeable.view(objects.spec(candidate)), changeable.view(spec))
    wanted = conditions_to_send(live, candidate)
    undo = objects.annotations(built).get(keys.OVERRIDDEN)
    noted = undo != objects.annotations(candidate).get(keys.OVERRIDDEN)
    news = labels or delta or settled.down or wanted != sent_conditions(candidate)
    if not (news or noted):
        return {}

    since = objects.merge_patches(record(candidate), delta | ({"labels": labels} if labels else {}))
    since["annotations"] = settled.sent
    if wanted:
        since[CONDITIONS] = wanted

    annotations = dict(settled.down)
    if news:
        annotations[keys.SENT] = annotation_merge.text(since)

    if noted:
        annotations[keys.OVERRIDDEN] = undo

    metadata: Object = {"uid": objects.uid(candidate), "annotations": annotations}
    if labels:
        metadata["labels"] = labels

    patch: Object = {"metadata": metadata}
    if delta:
        fields = [*_SPEC_FIELDS, changeable.DEADLINE]
        patch["spec"] = {field: spec[field] for field in fields if field in spec}

    return patch


def pending(candidate: Object, delegate: Object) -> Object:
    """Return what the source has sent and was not done to the delegate: a difference of records."""
    sent, done = objects.annotations(candidate), objects.annotations(delegate)
    if sent.get(keys.SENT) == done.get(keys.SENT):
        return {}

    return objects.merge_diff(record(delegate), record(candidate))


def resize_patch(delta: Object, delegate: Object) -> Object:
    """Build the strategic merge patch for the delegate's `resize`; empty if resources are equal."""
    resources = delta.get("resources") or {}
    spec: Object = {
        field: _entries(resources[field], "resources")
        for field in changeable.CONTAINERS
        if resources.get(field)
    }
    if pod := resources.get("pod"):
        spec["resources"] = pod

    return {"metadata": {"uid": objects.uid(delegate)}, "spec": spec} if spec else {}


def ephemeral_patch(delta: Object, full: Object, delegate: Object) -> Object:
    """Build the strategic merge patch for the delegate's `ephemeralcontainers`.

    `full` is the chaperon with its whole spec.
    """
    new = delta.get(changeable.EPHEMERAL) or {}
    entries = [e for e in objects.spec(full).get(changeable.EPHEMERAL) or () if e["name"] in new]
    return {
        "metadata": {"uid": objects.uid(delegate)},
        "spec": {changeable.EPHEMERAL: entries},
    }


def conditions_patch(delta: Object, candidate: Object, pod: Object) -> Object:
    """Build the strategic merge patch for the status of a delegate; `pod` is whole.

    Only the types that the pod names as readiness gates, whatever a source may ask for.
    """
    known, sent = conditions.of(pod), sent_conditions(candidate)
    types = {type_ for type_ in delta.get(CONDITIONS) or () if type_ in conditions.sendable(pod)}
    wanted = {type_: {"type": type_, **sent[type_]} for type_ in sorted(types) if sent.get(type_)}
    entries = conditions.patch({t: known[t] for t in types if t in known}, wanted)
    if not entries:
        return {}

    return objects.status_patch(pod, {"conditions": entries})


def pod_patch(delta: Object, delegate: Object, done: Object) -> Object:
    """Build the strategic merge patch for the delegate itself, with `done` as its new record."""
    annotations = {**(delta.get("annotations") or {}), keys.SENT: annotation_merge.text(done)}
    metadata: Object = {"uid": objects.uid(delegate), "annotations": annotations}
    if labels := delta.get("labels"):
        metadata["labels"] = labels

    images = delta.get("images") or {}
    spec: Object = {
        field: _entries(images[field], "image")
        for field in changeable.CONTAINERS
        if images.get(field)
    }
    if (deadline := delta.get(changeable.DEADLINE)) is not None:
        spec[changeable.DEADLINE] = deadline

    return {"metadata": metadata, **({"spec": spec} if spec else {})}


def _entries(values: Object, field: str) -> list[Object]:
    return [{"name": name, field: value} for name, value in values.items() if value]
