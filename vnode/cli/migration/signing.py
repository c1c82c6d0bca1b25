"""Signs what Admiralty's webhook has saved of pods that wait, so that vnode believes it.

Admiralty signs nothing, and whoever may create a pod may write that annotation. So only pods are
signed that are older than vnode's own webhook configuration: they have waited since before the
switch. Any later one would have been signed by the webhook, had it not been forged.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from vnode.api import keys, kinds, objects, saved_manifest
from vnode.api.errors import ConfigError, Conflict, NotFound, VnodeError
from vnode.api.objects import Object, Objects
from vnode.api.saved_manifest import SavedManifests
from vnode.cli import manifests
from vnode.cli.remove.report import RemovalReport, counted
from vnode.kube.client import Client
from vnode.runtime.manifest_key import ManifestKey

WAITING: Final = f"{keys.PROXY_PODS},spec.nodeName="
"""The field selector of proxy pods without a node."""
_ANEW: Final = (
    "it is younger than vnode's webhook configuration, so Admiralty has not admitted it; delete it "
    "and create it again, or set trustUnsignedManifests until it runs"
)


async def sign(client: Client, namespace: str, report: RemovalReport) -> None:
    """Sign the manifests of Admiralty's pods that wait, by the key in the agents' namespace.

    What is not signed is `left` in the report, with the reason.
    """
    try:
        waiting = [pod for pod in await client.list(kinds.PODS, field_selector=WAITING) if _is(pod)]
        if waiting:
            await _sign_all(client, namespace, waiting, report)
    except VnodeError as error:
        report.left.append(f"pods that wait were not signed: {error}")


def _is(pod: Object) -> bool:
    """Tell whether a pod has a manifest that nobody has signed."""
    annotations = objects.annotations(pod)
    is_saved = keys.SOURCE_POD_MANIFEST in annotations
    return is_saved and keys.MANIFEST_SIGNATURE not in annotations


async def _sign_all(
    client: Client, namespace: str, waiting: Objects, report: RemovalReport
) -> None:
    since, key, signed = await _webhook_since(client), ManifestKey(client, namespace), 0
    await key.load()
    for pod in waiting:
        try:
            if since is not None and _created(pod) > since:
                raise ConfigError(_ANEW)

            await _sign(client, pod, SavedManifests(lambda: key.key))
            signed += 1
        except NotFound:
            continue
        except Conflict as error:
            report.left.append(f"pod/{objects.key(pod)} not signed: {error}; run this again")
        except VnodeError as error:
            report.left.append(f"pod/{objects.key(pod)} not signed: {error}")

    if signed:
        report.say(f"signed what Admiralty has saved of {counted(signed, 'pod')} that wait")


async def _sign(client: Client, pod: Object, signer: SavedManifests) -> None:
    namespace, text = objects.namespace(pod), objects.annotations(pod)[keys.SOURCE_POD_MANIFEST]
    saved_manifest.read(text)
    signature = signer.signature(pod, namespace, text)
    signed = {"metadata": {"annotations": {keys.MANIFEST_SIGNATURE: signature}}}
    body = objects.if_unchanged(signed, pod)
    await client.patch(kinds.PODS, objects.name(pod), body, namespace)


async def _webhook_since(client: Client) -> datetime | None:
    """Return since when vnode's webhook is configured; None if it is not."""
    try:
        return _created(await client.get(kinds.MUTATING_WEBHOOKS, manifests.WEBHOOK))
    except NotFound:
        return None


def _created(obj: Object) -> datetime:
    if (created := objects.created_at(obj)) is None:
        raise ConfigError("it does not say when it was created")

    return created
