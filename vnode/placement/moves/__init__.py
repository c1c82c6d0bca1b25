"""Moves pods that run to where placement policies want them; one for each term of a leader.

`controller` looks at one workload at a time, asks `vnode.scheduling.placement.moving` what to do,
and evicts; `situation` puts together what that depends on, `under_way` knows which moves are not
over, `plan_changes` finds out which policies have come to plan something else, `telling` says it
in Events, and `rebalances` has workloads moved that a Rebalance names.
"""
