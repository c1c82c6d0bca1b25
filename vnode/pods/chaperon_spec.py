"""Builds the spec of a chaperon: what of a pod's spec is about its containers, wherever they run.

What chose the virtual node stays in the source, and vnode's own schedulers and tokens are put in.
No I/O.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from vnode.api import keys, merged_selectors, names, objects, renaming, virtual_constraints
from vnode.api.errors import ConfigError
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.saved_manifest import SavedManifests
from vnode.pods import token_volumes

_CONSTRAINTS: Final = ("nodeSelector", "tolerations", "affinity", "topologySpreadConstraints")


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


def travelling(pod: Object, proxy: Object, identity: Identity, target: str) -> Object:
    """Return a pod's spec without what is about virtual nodes and schedulers of the source."""
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


def check_account(spec: Object, plain: Object, source_api: tuple[str, str] | None) -> None:
    """Raise ConfigError if an override changed the account, and tokens are those of the source."""
    account = spec.get("serviceAccountName")
    if source_api is not None and account != plain.get("serviceAccountName"):
        raise ConfigError(
            f"an override policy has the pod run as service account {account}, and the Target asks "
            f"for tokens of this cluster (annotation {keys.TOKENS}), which has them for the pod's "
            "own account only: take one of the two away"
        )


def finish(
    spec: Object,
    proxy: Object,
    source_api: tuple[str, str] | None,
    tokens: Collection[str],
    *,
    reserves: bool,
) -> None:
    """Put into a spec, the caller's own, what vnode itself needs and no policy decides."""
    if source_api is None:
        token_volumes.drop(spec)
    else:
        secret = names.token_secret(objects.name(proxy), objects.uid(proxy))
        token_volumes.replace(spec, secret, source_api, tokens)

    if reserves:
        spec["schedulerName"] = keys.CANDIDATE_SCHEDULER
    elif spec.get("schedulerName") == keys.PROXY_SCHEDULER:
        spec.pop("schedulerName")
