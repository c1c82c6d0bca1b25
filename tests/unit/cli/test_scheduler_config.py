"""The candidate scheduler's configuration file."""

from __future__ import annotations

from pathlib import Path

import pytest

from vnode.api.errors import ConfigError
from vnode.cli import scheduler_config


def test_the_extender_binds_and_is_asked_before_others_are_preempted():
    config = scheduler_config.build("https://192.0.2.1:9444/", credentials=Path("/creds"))
    [extender] = config["extenders"]
    verbs = {field for field in extender if field.endswith("Verb")}
    assert verbs == {"bindVerb", "preemptVerb"}
    assert not extender["nodeCacheCapable"]  # victims come with their priorities
    assert extender["urlPrefix"] == "https://192.0.2.1:9444"
    assert extender["tlsConfig"]["certFile"] == "/creds/tls.crt"
    assert extender["ignorable"] is False


def test_it_schedules_candidates_only():
    config = scheduler_config.build("https://192.0.2.1:9444")
    assert [profile["schedulerName"] for profile in config["profiles"]] == ["admiralty-candidate"]


def test_a_kubeconfig_is_named_only_if_there_is_one():
    inside = scheduler_config.build("https://192.0.2.1:9444")
    outside = scheduler_config.build("https://192.0.2.1:9444", kubeconfig=Path("/k"))
    assert "kubeconfig" not in inside["clientConnection"]
    assert outside["clientConnection"]["kubeconfig"] == "/k"


def test_an_extender_without_tls_is_refused():
    with pytest.raises(ConfigError, match="https://"):
        scheduler_config.build("http://192.0.2.1:9444")
