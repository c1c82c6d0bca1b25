"""What the kubelet API answers where there is nothing to ask."""

from __future__ import annotations

import pytest

from vnode.kubelet.delegates import ServedNode
from vnode.kubelet.refusal import Refused
from vnode.runtime.links import Links


async def test_a_missing_connection_is_told_with_a_status_whose_text_users_see() -> None:
    async def nobody(*_names: str) -> None:
        return None

    with pytest.raises(Refused) as refused:
        _ = ServedNode("admiralty-default-c2", Links(), nobody).link

    # Of other statuses the API server shows `kubectl logs` none of the text.
    assert refused.value.status in (400, 403, 500)
    assert refused.value.text.endswith("see kubectl describe node admiralty-default-c2")
