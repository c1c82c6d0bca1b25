"""Names the paths of the webhook: what a configuration calls, and the secret at their end.

An API server does not say who it is when it calls a webhook, so the paths have a secret, which only
those know who may read webhook configurations. It is a digest of the key that all agents share: so
all replicas know it before the configuration names it. Manifests have the plain paths; the agents
add the secret to what is installed (`vnode.runtime.certs.webhook_bundle`).
"""

from __future__ import annotations

import hashlib
import hmac
import re
from functools import lru_cache
from typing import Final

from vnode.api.objects import Object

PODS: Final = "/mutate--v1-pod"
OWN_PODS: Final = "/keep-own-pods"
"""For pods of namespaces that did not opt in: none of them is elected."""
AUTHORS: Final = "/record-author"
PLAIN: Final = (PODS, OWN_PODS, AUTHORS)

_DIGITS: Final = 40  # of sixteen: 160 bits; a segment of a path may have lower-case letters only
_PURPOSE: Final = b"webhook-paths"  # other digests by the same key are of other things
_ENDING: Final = re.compile(
    rf"(?P<plain>{'|'.join(map(re.escape, PLAIN))})(?:/(?P<secret>[0-9a-f]{{{_DIGITS}}}))?/?\Z"
)


@lru_cache(maxsize=2)
def secret_of(key: bytes) -> str:
    """Return the secret that agents with that key add to the paths."""
    return hmac.new(key, _PURPOSE, hashlib.sha256).hexdigest()[:_DIGITS]


def split(address: str) -> tuple[str, str | None]:
    """Return an address or path without the secret, and the secret: "" if it has none.

    None if it ends in no path of ours.
    """
    found = _ENDING.search(address)
    if found is None:
        return address, None

    return address[: found.end("plain")], found["secret"] or ""


def address_of(client_config: Object) -> str:
    """Return the address or path that a webhook of a configuration is called by, "" without one."""
    service = client_config.get("service") or {}
    return str(client_config.get("url") or service.get("path") or "")


def secrets_in(configuration: Object) -> set[str]:
    """Return the secrets by which a configuration has us called, of webhooks with a caBundle.

    Without one, no API server trusts us yet. "" is among them if a path is plain.
    """
    configs = (hook.get("clientConfig") or {} for hook in configuration.get("webhooks") or ())
    called = (split(address_of(each))[1] for each in configs if each.get("caBundle"))
    return {secret for secret in called if secret is not None}
