"""Defines `vnode dashboard`: serves the pages of `vnode.dashboard` on this machine.

`observer` keeps the stores that they show; the agent, which serves the same pages, has its own.
"""
