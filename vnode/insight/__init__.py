"""Describes pods and targets to people, on a terminal and on the dashboard's pages.

`status_text` formats the columns of tables, `accounts` sums the requests of pods and the capacity
of targets, `measuring` reads their usage. For the story of one pod, `collecting` reads `facts`,
from the source and, with the credentials of each Target's Secret (`target_clients`), from the
targets; `story` orders them into chapters, and `judging` finds the present state (`failing`,
`refusals`) and its cure (`advice`, `refusal_cures`). These are pure, so that every state has a unit
test.
"""
