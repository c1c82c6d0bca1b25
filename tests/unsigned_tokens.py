"""JSON web tokens that nobody has signed: for code that reads claims and verifies nothing."""

from __future__ import annotations

import base64
import json


def jwt(**claims: object) -> str:
    """Return a token with those claims."""
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJub25lIn0.{payload}.x"
