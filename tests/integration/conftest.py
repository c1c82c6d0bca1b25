"""Fixtures of all integration tests."""

from __future__ import annotations

from tests.fleets import (
    bare_fleet,
    client,
    fleet,
    installation,
    kubelet_fleet,
    namespace,
    pod_namespace,
)
from tests.integration.served_webhook import webhook_client, webhook_namespace

__all__ = [
    "bare_fleet",
    "client",
    "fleet",
    "installation",
    "kubelet_fleet",
    "namespace",
    "pod_namespace",
    "webhook_client",
    "webhook_namespace",
]
