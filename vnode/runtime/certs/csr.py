"""Gets a serving certificate from a signer of the cluster, by CertificateSigningRequest.

The steps are those of a kubelet: make a key, create a request, wait until somebody approves it and
the signer signs it, and request again at 70 to 90 % of the certificate's life. The agent approves
its own requests if it has the right to; nothing in Kubernetes does it by itself. The key never
leaves this process, so each start makes a new request.

The signer of kubelets prescribes the content of a request: its subject is that of a node, and it
names an address. Who creates the request does not matter to that signer.
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
from vnode.runtime.link_health import LinkHealth
from vnode.telemetry import audit

_GROUP: Final = "system:nodes"
_USER: Final = "system:node:vnode"
_USAGES: Final = ("digital signature", "server auth")
_RETRY: Final = 10.0  # seconds after an error of the API server
_RECHECK: Final = 300.0  # seconds: the right to approve may have been granted meanwhile

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CSRState:
    """Describes the progress of a request. With `certificate` it is done."""

    reason: str
    message: str
    certificate: bytes = b""
    approvable: bool = False


class SignedCertificate:
    """Requests a certificate for these hosts from `signer`; a `kubelet_serving.Source`."""

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
        self.health = LinkHealth(
            False, "NotRequested", f"not requested from {signer} yet", clock.now()
        )
        self._client = client
        self._signer = signer
        self._hosts = hosts
        self._clock = clock
        self._chance = chance
        self._due: datetime | None = None  # next request; None before the first certificate
        self._pending: tuple[str, bytes] | None = None  # name of the open request, and its key
        self._instance = secrets.token_hex(8)
        self._requests = Informer(
            client,
            kinds.CSRS,
            label_selector=f"{keys.AGENT_INSTANCE}={self._instance}",
            clock=clock,
        )

    async def run(self, changed: Callable[[], None]) -> None:
        """Request, wait, and renew, until cancelled."""

        async def reconcile() -> float:
            before = (self.pair, self.health.reason, self.health.message)
            wait = await self._step()
            if before != (self.pair, self.health.reason, self.health.message):
                changed()

            return wait

        await renewal.keep_object(self._requests, reconcile, at_once=True)

    async def _step(self) -> float:
        """Do what can be done now; return the seconds until the next step."""
        try:
            if self._pending is None:
                if self._due is not None and (left := self._until(self._due)) > 0:
                    return min(left, _RECHECK)

                await self._request()

            return await self._check()
        except Denied as error:
            self._set_health(False, "NotAllowed", f"{error.message}: {cures.REPAIR}; {OWN}")
        except VnodeError as error:
            self._set_health(
                False, "RequestFailed", f"the certificate cannot be requested: {error}"
            )

        return _RETRY

    async def _request(self) -> None:
        request, key = await asyncio.to_thread(keypairs.signing_request, _USER, _GROUP, self._hosts)
        body = build(self._hosts[0], self._signer, request, self._instance)
        with audit.on_behalf_of(audit.AGENT):
            created = await self._client.create(kinds.CSRS, body)

        self._pending = (objects.name(created), key)
        log.info("requested a certificate from %s: %s", self._signer, objects.name(created))

    async def _check(self) -> float:
        assert self._pending is not None
        name, key = self._pending
        try:
            request = self._requests.store.get(name) or await self._client.get(kinds.CSRS, name)
        except NotFound:
            log.warning("the request %s is gone; creating another", name)
            self._pending = None
            return 0.0

        state = judge(request, self._signer)
        if state.certificate:
            self._accept(state, Pair(state.certificate, key))
            return _RECHECK

        await self._wait(request, state)
        ends = self._until(keypairs.expiry(self.pair.x509)) if self.pair else 0.0
        return min(ends, _RECHECK) if ends > 0 else _RECHECK

    async def _wait(self, request: Object, state: CSRState) -> None:
        if state.approvable and await self._approve(request):
            return  # the next event of the request leads to the next step

        if self.pair is not None and keypairs.expiry(self.pair.x509) > self._clock.now():
            end = objects.timestamp(keypairs.expiry(self.pair.x509))
            message = f"{state.message}; the present certificate ends at {end}"
        else:
            message = f"{state.message}; {OWN}"

        self._set_health(False, state.reason, message)

    async def _approve(self, request: Object) -> bool:
        """Try to approve a request; False if the agent may not."""
        name = objects.name(request)
        condition = {
            "type": "Approved",
            "status": "True",
            "reason": "VnodeApproved",
            "message": "requested by this agent for its own address",
        }
        conditions = [*objects.status(request).get("conditions", ()), condition]
        body = objects.if_unchanged({"status": {"conditions": conditions}}, request)
        try:
            with audit.on_behalf_of(audit.AGENT):
                await self._client.patch(kinds.CSRS, name, body, subresource="approval")
        except Denied as error:
            log.debug("%s is left to others to approve: %s", name, error)
            return False
        except Conflict:
            return True

        log.info("approved %s", name)
        return True

    def _accept(self, state: CSRState, pair: Pair) -> None:
        self._pending = None
        try:
            keypairs.check_pair(pair)
        except ConfigError as error:
            self._due = self._clock.now()
            message = f"{self._signer} issued an unusable certificate: {error}"
            self._set_health(False, "BadCertificate", message)
            return

        self.pair = pair
        self._due = keypairs.renewal(pair.x509, self._chance())
        self._set_health(True, state.reason, state.message)

    def _until(self, moment: datetime) -> float:
        return (moment - self._clock.now()).total_seconds()

    def _set_health(self, healthy: bool, reason: str, message: str) -> None:
        if (reason, message) != (self.health.reason, self.health.message):
            (log.info if healthy else log.warning)("certificate of the kubelet API: %s", message)
            self.health = LinkHealth(healthy, reason, message, self._clock.now())


def build(address: str, signer: str, request: bytes, instance: str) -> Object:
    """Build the CertificateSigningRequest; its name tells people whose it is."""
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
    """Return the state of a request, with a message that says what to do."""
    name, status = objects.name(request), objects.status(request)
    if issued := status.get("certificate"):
        return CSRState("Issued", f"{name} was signed by {signer}", base64.b64decode(issued))

    conditions = {entry.get("type"): entry for entry in status.get("conditions") or ()}
    again = f"correct that, then request again: kubectl delete csr {name}"
    if denied := conditions.get("Denied"):
        return CSRState("RequestDenied", f"{name} was denied ({_reason(denied)}): {again}")

    if failed := conditions.get("Failed"):
        return CSRState("SignerFailed", f"{signer} refused {name} ({_reason(failed)}): {again}")

    if "Approved" in conditions:
        return CSRState("NotSigned", f"{name} is approved, but {signer} has not signed it yet")

    command = f"run: kubectl certificate approve {name}"
    return CSRState("NotApproved", f"{name} waits for approval: {command}", approvable=True)


def _reason(condition: Object) -> str:
    return str(condition.get("message") or condition.get("reason") or "no reason given")
