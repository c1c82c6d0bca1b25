"""Makes tokens of service accounts that look as if they had been made hours ago.

They are signed by the key of the fleet's cluster, so that its API server takes them.
"""

from __future__ import annotations

import base64
import json
import time
import uuid

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from tests.kit import Fleet
from vnode.targets import expiry


def aged(fleet: Fleet, cluster: str, token: str, *, hours: float = 10) -> str:
    """Return the same token as if it had been made hours ago, and ended in an hour."""
    key = serialization.load_pem_private_key(service_account_key(fleet, cluster), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    now = int(time.time())
    begun = now - int(hours * 3600)
    claims = {**expiry.claims(token), "iat": begun, "nbf": begun, "exp": now + 3600}
    claims["jti"] = uuid.uuid4().hex
    head = token.partition(".")[0]
    signed = f"{head}.{_encoded(json.dumps(claims).encode())}"
    numbers = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{signed}.{_encoded(b''.join(number.to_bytes(32) for number in numbers))}"


def service_account_key(fleet: Fleet, cluster: str) -> bytes:
    return (fleet.folder / cluster / "pki" / "service-accounts.key").read_bytes()


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
