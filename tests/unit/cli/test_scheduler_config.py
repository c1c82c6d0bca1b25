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


def test_further_extenders_filter_and_never_bind():
    text = "https://hami:443/,managed=nvidia.com/gpu,ignored=nvidia.com/gpumem,ca=/ca.crt"
    extra, agent = scheduler_config.build("https://192.0.2.1:9444", extra_extenders=[text])[
        "extenders"
    ]
    assert agent["bindVerb"] == "bind"
    assert {field: value for field, value in extra.items() if field.endswith("Verb")} == {
        "filterVerb": "filter"
    }
    assert extra["managedResources"] == [
        {"name": "nvidia.com/gpu", "ignoredByScheduler": False},
        {"name": "nvidia.com/gpumem", "ignoredByScheduler": True},
    ]
    assert (extra["urlPrefix"], extra["tlsConfig"]) == ("https://hami:443", {"caFile": "/ca.crt"})


def test_a_further_extender_may_be_without_tls_and_have_a_verb_of_its_own():
    text = "http://127.0.0.1:8000/scheduler,managed=example.com/card,verb=fits"
    extra = scheduler_config.build("https://192.0.2.1:9444", extra_extenders=[text])["extenders"][0]
    assert not extra["enableHTTPS"]
    assert (extra["urlPrefix"], extra["filterVerb"]) == ("http://127.0.0.1:8000/scheduler", "fits")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hami:443,managed=nvidia.com/gpu", "must start with an address"),
        ("https://hami", "names no resource: all candidates would be asked for"),
        ("https://hami,managed=cpu", "'managed=cpu' is none of managed=RESOURCE"),
        ("https://hami,managed=nvidia.com/gpu,bind=x", "'bind=x' is none of managed=RESOURCE"),
        ("http://hami,managed=nvidia.com/gpu,ca=/x", "'ca=/x' is none of"),
    ],
)
def test_what_is_no_further_extender_is_named_with_the_cure(text, message):
    with pytest.raises(ConfigError, match=message):
        scheduler_config.build("https://192.0.2.1:9444", extra_extenders=[text])
