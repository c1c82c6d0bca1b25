"""Moves pods that run to where placement policies want them; one for each term of a leader.

`controller` finds the workloads that need it and looks at one at a time. `mover` asks
`vnode.planning.moving` what to do, and evicts. `workload_state` and `room_tracker` put
together what that depends on, `under_way` knows which moves are not over, and `workload_moves`
keeps it for one workload. `plan_changes` finds out which policies have come to plan something else,
`demands` knows what else is asked for, `rebalances` asks for what each Rebalance names, and
`telling` says in Events what was done.
"""
