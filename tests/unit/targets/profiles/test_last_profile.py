"""What a Target keeps of the profile that it was made of."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vnode.targets.profiles import last_profile


def profile(**status: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "fleet", "name": "c2"}, "spec": {}, "status": status}


def many(count: int) -> list[dict[str, str]]:
    return [{"name": f"p{number}", "value": "x"} for number in range(count)]


def test_of_too_many_properties_none_is_kept_and_all_else_is() -> None:
    providers = [{"name": "eks"}]
    kept = last_profile.text_of(profile(accessProviders=providers, properties=many(10_000)))
    assert json.loads(kept)["status"] == {"accessProviders": providers}


def test_what_is_far_too_large_is_not_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json, "dumps", None)
    assert last_profile.text_of(profile(accessProviders=many(10_000))) == ""
