"""A request that is not served, as an exception: raised anywhere below a route, answered in one
place with the status and the plain text that a kubelet would use.
"""

from __future__ import annotations

from vnode.api.errors import VnodeError


class Refused(VnodeError):
    """The answer to give: an HTTP status and what the user is told.

    `content_type` is other than plain text where the words are another server's.
    """

    def __init__(self, status: int, text: str, content_type: str = "text/plain") -> None:
        self.status = status
        self.text = text
        self.content_type = content_type
        super().__init__(f"{status}: {text}")
