"""Kubelet queries in, queries for the target's API server out."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.scheduling import costs
from vnode.kubelet import queries
from vnode.kubelet.refusal import Refused


def logs(**query: str) -> dict[str, str]:
    return dict(queries.logs(list(query.items()), "app"))


def test_log_options_are_kept_and_the_container_comes_from_the_path():
    asked = logs(
        follow="true",
        previous="false",
        timestamps="1",
        tailLines="0",
        limitBytes="10",
        sinceSeconds="5",
        stream="All",
    )

    assert asked == {
        "container": "app",
        "follow": "true",
        "timestamps": "true",
        "tailLines": "0",
        "limitBytes": "10",
        "sinceSeconds": "5",
        "stream": "All",
    }


def test_a_flag_without_a_value_is_set():
    assert logs(follow="")["follow"] == "true"


def test_the_old_tail_is_understood():
    assert logs(tail="7")["tailLines"] == "7"
    assert "tailLines" not in logs(tail="all", tailLines="3")


@pytest.mark.parametrize(
    "query",
    [
        {"tailLines": "x"},
        {"limitBytes": "1.5"},
        {"sinceTime": "yesterday"},
        {"tailLines": "9" * 25},
    ],
)
def test_what_cannot_be_decoded_is_400(query):
    with pytest.raises(Refused) as refused:
        logs(**query)

    assert refused.value.status == 400


@pytest.mark.parametrize(
    "query",
    [
        {"tailLines": "-1"},
        {"limitBytes": "0"},
        {"sinceSeconds": "0"},
        {"sinceSeconds": "5", "sinceTime": "2026-01-01T00:00:00Z"},
        {"stream": "stdout"},
        {"stream": "Stdout", "tailLines": "5"},
    ],
)
def test_what_does_not_go_together_is_422(query):
    with pytest.raises(Refused) as refused:
        logs(**query)

    assert refused.value.status == 422


NAMES = st.sampled_from(["follow", "tail", "tailLines", "sinceTime", "stream", "x"])


@given(st.lists(st.tuples(NAMES, st.text(max_size=12)), max_size=4))
def test_no_query_does_anything_but_pass_or_be_refused(pairs):
    with suppress(Refused):
        assert queries.logs(pairs, "app")[0] == ("container", "app")


def test_streams_and_the_command_are_renamed_in_order():
    raw = "command=sh&input=1&output=1&command=-c&tty=0"

    assert queries.execute(raw, "app") == (
        "container=app&stdin=true&stdout=true&stderr=false&tty=false&command=sh&command=-c"
    )


def test_an_argument_that_is_no_text_is_passed_on_as_it_is():
    query = queries.execute("output=1&command=a+b%26c&command=%FF", "app")

    assert query.endswith("&command=a+b%26c&command=%FF")
    assert queries.command_length(query) == len("a b&c") + 1


@pytest.mark.parametrize("bad", [" HTTP/1.1", "\r\nHost: x", "\x00", "é"])
def test_what_would_end_the_line_of_a_request_is_400(bad):
    with pytest.raises(Refused) as refused:
        queries.execute(f"output=1&command=a{bad}", "app")

    assert refused.value.status == 400
    with pytest.raises(Refused):
        queries.port_forward(f"port=80{bad}")


def test_a_terminal_has_no_separate_error_stream():
    asked = queries.attach("tty=1&error=1&output=1", "app")

    assert "stderr=false" in asked.split("&")


def test_no_stream_at_all_is_400():
    with pytest.raises(Refused) as refused:
        queries.attach("tty=1", "app")

    assert refused.value.status == 400


def test_ports_of_websocket_clients_are_renamed():
    assert queries.port_forward("port=80&port=81") == "ports=80&ports=81"
    assert queries.port_forward("") == ""


def test_parameters_are_counted_and_not_parsed():
    queries.check_size("&".join(["a"] * queries.MOST))
    few, many = "a=b&" * 10, "a=b&" * (queries.MOST - 1)
    with pytest.raises(Refused, match="at most 10000 are taken") as refused:
        queries.check_size("&" * queries.MOST)

    assert refused.value.status == 400
    cost = costs.bytecodes(lambda: queries.check_size(many))
    assert cost == costs.bytecodes(lambda: queries.check_size(few))


def test_of_many_arguments_each_costs_little():
    """A MiB that has as many as are taken is one step of the event loop."""
    raw = "output=1&" + "&".join(["command=%2Fa"] * (queries.MOST - 1))
    assert costs.bytecodes(lambda: queries.execute(raw, "app")) < 100 * queries.MOST
    one = "output=1&command=" + "%2F" * 100_000
    assert costs.bytecodes(lambda: queries.execute(one, "app")) < 10_000
