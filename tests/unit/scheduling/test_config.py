from __future__ import annotations

import pytest
import yaml

from vnode.api.errors import ConfigError
from vnode.scheduling import config
from vnode.scheduling.queue import QueueSettings


def test_nothing_means_the_defaults() -> None:
    loaded = config.load(None)
    assert loaded == config.SchedulingConfig()
    assert loaded.queue.settings() == QueueSettings(1.0, 10.0, 60.0)


def test_the_words_are_those_of_kube_scheduler() -> None:
    loaded = config.load(
        yaml.safe_load(
            """
            profile:
              plugins:
                enabled: [{name: NodeResourcesFit, weight: 2}, {name: Cheapest}]
                disabled: [{name: EvenSpread}]
              pluginConfig:
              - name: NodeResourcesFit
                args: {scoringStrategy: {type: MostAllocated}}
            queue: {podMaxBackoffSeconds: 30}
            """
        )
    )
    assert [(p.name, p.weight) for p in loaded.profile.plugins.enabled] == [
        ("NodeResourcesFit", 2),
        ("Cheapest", None),
    ]
    assert loaded.profile.plugin_config[0].args == {"scoringStrategy": {"type": "MostAllocated"}}
    assert loaded.queue.settings().max_backoff == 30


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"profiles": {}}, 'scheduling: unknown field "profiles"; known are: profile, queue'),
        (
            {"profile": {"plugins": {"enabled": [{"name": "A"}, {"nam": "B"}]}}},
            'scheduling.profile.plugins.enabled: unknown field "nam"; known are: name, weight',
        ),
        ({"profile": {"plugins": {"enabled": [{"weight": 1}]}}}, "required field `name`"),
        ({"profile": {"plugins": {"enabled": [{"name": "A", "weight": "x"}]}}}, "int"),
        (["profile"], "scheduling: Expected `object`"),
        ({"queue": {"podInitialBackoffSeconds": 0}}, "above 0"),
        ({"queue": {"podInitialBackoffSeconds": 20}}, "not above podMaxBackoffSeconds"),
        ({"queue": {"podMaxInUnschedulablePodsSeconds": 0}}, "above 0"),
    ],
)
def test_what_is_wrong_is_named_with_what_would_be_right(section: object, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load(section)

    assert message in str(caught.value)
