"""A serving certificate from a signer of the cluster, by CertificateSigningRequest.

The steps are those of a kubelet: make a key, ask, wait until somebody approves and the signer has
signed, and ask again at 70 to 90 % of the certificate's life. The agent approves its own requests
if it has been given the right to; nothing in Kubernetes does it by itself. The key never leaves
this process, so each start asks anew.

What a request looks like is set by the signer that kubelets use: its subject is that of a node, and
it names an address. Who asks does not matter to that signer.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from vnode.api import cures, keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError, Conflict, Denied, NotFound, VnodeError
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.certs import keypairs, renewal
from vnode.runtime.certs.keypairs import Pair
from vnode.runtime.certs.kubelet_serving import OWN
from vnode.runtime.links import LinkHealth

_GROUP: Final = "system:nodes"
_USER: Final = "system:node:vnode"
_USAGES: Final = ("digital signature", "server auth")
_RETRY: Final = 10.0  # seconds after an error of the API server
_LOOK_AGAIN: Final = 300.0  # seconds: the right to approve may have been given meanwhile

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CSRState:
    """What has become of a request. With `certificate` it is done."""

    reason: str
    message: str
    certificate: bytes = b""
    approvable: bool = False


class SignedCertificate:
    """A kubelet_certificate.Source that asks `signer` for a certificate for these hosts."""

    def __init__(
        self,
        client: Client,
        signer: str,
        hosts: tuple[str, ...],
        *,
        clock: Clock,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.pair: Pair | None = None
        self.health = LinkHealth(False, "NotRequested", f"{signer} was not asked yet", clock.now())
        self._client = client
        self._signer = signer
        self._hosts = hosts
        self._clock = clock
        self._chance = chance
        self._due: datetime | None = None  # when to ask again; None before the first certificate
        self._pending: tuple[str, bytes] | None = None  # name of the open request, and its key
        self._instance = secrets.token_hex(8)
        self._requests = Informer(
            client,
            kinds.CSRS,
            label_selector=f"{keys.AGENT_INSTANCE}={self._instance}",
            clock=clock,
        )

    async def run(self, changed: Callable[[], None]) -> None:
        """Ask, wait, and renew, until cancelled."""

        async def look() -> float:
            before = (self.pair, self.health.reason, self.health.message)
            wait = await self._step()
            if before != (self.pair, self.health.reason, self.health.message):
                changed()

            return wait

        await renewal.keep_object(self._requests, look, at_once=True)

    async def _step(self) -> float:
        """Do what can be done now; answers after how many seconds to look again."""
        try:
            if self._pending is None:
                if self._due is not None and (left := self._until(self._due)) > 0:
                    return min(left, _LOOK_AGAIN)

                await self._ask()

            return await self._follow()
        except Denied as error:
            self._say(False, "NotAllowed", f"{error.message}: {cures.REPAIR}; {OWN}")
        except VnodeError as error:
            self._say(False, "RequestFailed", f"the certificate cannot be requested: {error}")

        return _RETRY

    async def _ask(self) -> None:
        request, key = await asyncio.to_thread(keypairs.signing_request, _USER, _GROUP, self._hosts)
        body = build(self._hosts[0], self._signer, request, self._instance)
        created = await self._client.create(kinds.CSRS, body)
        self._pending = (objects.name(created), key)
        log.info("asked %s for a certificate: %s", self._signer, objects.name(created))

    async def _follow(self) -> float:
        assert self._pending is not None
        name, key = self._pending
        try:
            found = self._requests.store.get(name) or await self._client.get(kinds.CSRS, name)
        except NotFound:
            log.warning("the request %s is gone; asking again", name)
            self._pending = None
            return 0.0

        verdict = judge(found, self._signer)
        if verdict.certificate:
            self._take(verdict, Pair(verdict.certificate, key))
            return _LOOK_AGAIN

        await self._wait(found, verdict)
        ends = self._until(keypairs.expiry(self.pair.x509)) if self.pair else 0.0
        return min(ends, _LOOK_AGAIN) if ends > 0 else _LOOK_AGAIN

    async def _wait(self, request: Object, verdict: CSRState) -> None:
        if verdict.approvable and await self._approved(request):
            return  # the next event of the request goes on from here

        if self.pair is not None and keypairs.expiry(self.pair.x509) > self._clock.now():
            end = objects.timestamp(keypairs.expiry(self.pair.x509))
            message = f"{verdict.message}; the present certificate ends at {end}"
        else:
            message = f"{verdict.message}; {OWN}"

        self._say(False, verdict.reason, message)

    async def _approved(self, request: Object) -> bool:
        """Try to approve; whether that was done, or is to be tried again."""
        name = objects.name(request)
        condition = {
            "type": "Approved",
            "status": "True",
            "reason": "VnodeApproved",
            "message": "requested by this agent for its own address",
        }
        body = {
            "metadata": {"resourceVersion": objects.resource_version(request)},
            "status": {"conditions": [*objects.status(request).get("conditions", ()), condition]},
        }
        try:
            await self._client.patch(kinds.CSRS, name, body, subresource="approval")
        except Denied as error:
            log.debug("%s is left to others to approve: %s", name, error)
            return False
        except Conflict:
            return True

        log.info("approved %s", name)
        return True

    def _take(self, verdict: CSRState, pair: Pair) -> None:
        self._pending = None
        try:
            keypairs.check_pair(pair)
        except ConfigError as error:
            self._due = self._clock.now()
            self._say(False, "BadCertificate", f"what {self._signer} signed is of no use: {error}")
            return

        self.pair = pair
        self._due = keypairs.renewal(pair.x509, self._chance())
        self._say(True, verdict.reason, verdict.message)

    def _until(self, moment: datetime) -> float:
        return (moment - self._clock.now()).total_seconds()

    def _say(self, healthy: bool, reason: str, message: str) -> None:
        if (reason, message) != (self.health.reason, self.health.message):
            (log.info if healthy else log.warning)("certificate of the kubelet API: %s", message)
            self.health = LinkHealth(healthy, reason, message, self._clock.now())


def build(address: str, signer: str, request: bytes, instance: str) -> Object:
    """The CertificateSigningRequest; its name tells people whose it is."""
    readable = address.replace(":", "-").strip("-")
    return {
        "metadata": {
            "generateName": f"vnode-kubelet-{readable}-",
            "labels": {keys.AGENT_INSTANCE: instance},
        },
        "spec": {
            "signerName": signer,
            "request": base64.b64encode(request).decode(),
            "usages": list(_USAGES),
        },
    }


def judge(request: Object, signer: str) -> CSRState:
    """What has become of a request, in words that say what to do."""
    name, status = objects.name(request), objects.status(request)
    if issued := status.get("certificate"):
        return CSRState("Issued", f"{name} was signed by {signer}", base64.b64decode(issued))

    conditions = {one.get("type"): one for one in status.get("conditions") or ()}
    again = f"mend that, then ask again: kubectl delete csr {name}"
    if denied := conditions.get("Denied"):
        return CSRState("RequestDenied", f"{name} was denied ({_words(denied)}): {again}")

    if failed := conditions.get("Failed"):
        return CSRState("SignerFailed", f"{signer} refused {name} ({_words(failed)}): {again}")

    if "Approved" in conditions:
        return CSRState("NotSigned", f"{name} is approved, but {signer} has not signed it yet")

    command = f"run: kubectl certificate approve {name}"
    return CSRState("NotApproved", f"{name} waits for approval: {command}", approvable=True)


def _words(condition: Object) -> str:
    return str(condition.get("message") or condition.get("reason") or "no reason given")
