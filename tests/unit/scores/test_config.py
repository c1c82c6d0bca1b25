"""What is published is configured; what cannot be is refused with the cure."""

from __future__ import annotations

from typing import Any

import pytest

from vnode.api import strict_decoding
from vnode.api.errors import ConfigError
from vnode.scores.config import ScoresConfig

GPU = {"name": "gpu", "resource": "nvidia.com/gpu", "most": 20}


def load(**section: Any) -> ScoresConfig:
    config = strict_decoding.decode(ScoresConfig, section, "scores")
    config.check()
    return config


def test_by_default_nothing_is_published_and_amounts_have_units() -> None:
    config = load()
    assert config.publish == ()
    amounts = {each.name: each.amount for each in config.resources}
    assert amounts == {"cpu": 100_000, "mem": 1024**4, "gpu": 20, "tpu": 20}


@pytest.mark.parametrize(
    ("section", "cure"),
    [
        ({"publish": ["ClusterScore", "ClusterScore"]}, "names a kind twice"),
        ({"publish": ["Rumour"]}, "Invalid enum value 'Rumour'"),
        ({"resources": [GPU, GPU]}, "two entries of one name"),
        ({"resources": [{**GPU, "name": "g p u"}]}, "a name has letters, digits"),
        ({"resources": [{**GPU, "resource": ""}]}, "name one, such as nvidia.com/gpu"),
        ({"resources": [{**GPU, "most": "lots"}]}, "is not a quantity"),
        ({"resources": [{**GPU, "most": 0}]}, "most must be above 0"),
        ({"resources": [{**GPU, "name": str(n)} for n in range(21)]}, "over 20 entries"),
        ({"resources": [{**GPU, "more": 1}]}, 'unknown field "more"'),
    ],
)
def test_what_is_wrong_is_refused_with_the_cure(section: dict[str, Any], cure: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(**section)

    assert cure in str(caught.value)
