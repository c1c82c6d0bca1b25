from vnode.kueue import topology
from vnode.kueue.topology import Domain

RACK, HOST = "example.com/rack", "kubernetes.io/hostname"


def test_domains_are_read_in_each_form_that_kueue_writes() -> None:
    assignment = {
        "levels": [RACK, HOST],
        "slices": [
            {
                "domainCount": 2,
                "valuesPerLevel": [
                    {"universal": "r1"},
                    {"individual": {"prefix": "n", "suffix": "-x", "roots": ["1", "2"]}},
                ],
                "podCounts": {"individual": [4, 2]},
            },
            {
                "domainCount": 1,
                "valuesPerLevel": [{"universal": "r2"}, {"universal": "n3"}],
                "podCounts": {"universal": 7},
            },
        ],
    }
    assert topology.domains(assignment) == (
        Domain({RACK: "r1", HOST: "n1-x"}, 4),
        Domain({RACK: "r1", HOST: "n2-x"}, 2),
        Domain({RACK: "r2", HOST: "n3"}, 7),
    )


def test_an_assignment_that_makes_no_sense_is_none() -> None:
    missing = {"domainCount": 3, "valuesPerLevel": [{"individual": {"roots": ["a"]}}]}
    for broken in (
        None,
        {},
        {"levels": [HOST]},
        {"levels": [HOST], "slices": [{**missing, "podCounts": {"universal": 1}}]},
        {"levels": [], "slices": [{**missing, "podCounts": {"universal": 1}}]},
    ):
        assert topology.domains(broken) == ()


def test_a_huge_assignment_is_read_in_part() -> None:
    values = [{"universal": "a"}]
    each = {"domainCount": 10**9, "valuesPerLevel": values, "podCounts": {"universal": 1}}
    assert len(topology.domains({"levels": [HOST], "slices": [each]})) == topology.MOST_DOMAINS
