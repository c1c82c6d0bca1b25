"""Reads the Secrets with kubeconfigs that Targets name."""

from __future__ import annotations

import base64
import binascii

from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.kube.kubeconfig import Kubeconfig
from vnode.targets.model import SecretReference


class SecretGone(ConfigError):
    """There is no Secret of the name that a Target gives."""


def kubeconfig(secret: Object | None, reference: SecretReference) -> Kubeconfig:
    """Parse the Secret's data under the key of the reference; ConfigError names the cure."""
    if secret is None:
        raise SecretGone(
            f"there is no Secret {reference.name!r} in namespace {reference.namespace!r}: create "
            "it with the target's kubeconfig (vnode connect does)"
        )

    data = secret.get("data") or {}
    if reference.key not in data:
        present = ", ".join(sorted(data)) or "nothing"
        raise ConfigError(
            f"Secret {reference.name!r} has no key {reference.key!r} but {present}: set "
            "spec.kubeconfigSecret.key, or add the key"
        )

    try:
        text = base64.b64decode(data[reference.key], validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise ConfigError(f"key {reference.key!r} of the Secret is not base64") from error

    return Kubeconfig.parse(text, reference.context)
