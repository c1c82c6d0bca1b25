"""Reads the decisions of others about clusters, which policies may follow, and publishes our own.

`slices` reads them from their objects, pure; `followed` watches these while a policy names some.
`published` makes objects of what was decided here, pure; `publisher` writes them.
"""
