"""Defines the exception by which a handler refuses a request.

It is raised anywhere below a route, and answered in one place with the status and the plain text
that a kubelet would use.
"""

from __future__ import annotations

from vnode.api.errors import VnodeError


class Refused(VnodeError):
    """Carries the answer: an HTTP status and the text for the user.

    `content_type` differs from plain text where the text is another server's.
    """

    def __init__(self, status: int, text: str, content_type: str = "text/plain") -> None:
        self.status = status
        self.text = text
        self.content_type = content_type
        super().__init__(f"{status}: {text}")
