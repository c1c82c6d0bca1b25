"""`vnode dashboard`, and the same pages behind a port of the agent.

The pages are `vnode.dashboard`'s; here is what they look at: stores that are kept for them
(`watching`), or those that the agent has (`served`).
"""
