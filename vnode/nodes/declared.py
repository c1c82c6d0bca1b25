"""Says what a virtual node declares: what all nodes of its target do, and our kubelet API. Pure.

What a target has reported is believed as long as its agent lives (`Link.node_features`).
"""

from __future__ import annotations

import re
from typing import Final

from vnode.api.node_features import NodeFeatures
from vnode.api.objects import Object

_DECLARED: Final = "declaredFeatures"
_OWN: Final = "ExtendWebSocketsToKubelet"


def fields(features: NodeFeatures, server_version: str) -> Object:
    """Return the fields of the status of a Node in a cluster of that version.

    Its API server then passes WebSockets of kubectl on unchanged, and we pass them on to the
    target's API server, instead of translating them; so we declare that for ourselves, whether the
    target's nodes do or not. Servers before 1.36 do not know the field, or refuse it.
    """
    found = features.status()
    declared = {_OWN, *found.pop(_DECLARED, ())}
    numbers = [int(n) for n in re.findall(r"[0-9]{1,9}", server_version)[:2]]
    return {**found, _DECLARED: sorted(declared)} if numbers >= [1, 36] else found
