"""What people are told about pods and targets, whether on a terminal or on the dashboard's pages.

`words` says an object in a word, `accounts` adds up what pods ask for and targets have, `measuring`
reads what they use. The story of one pod: `collecting` reads, from the source and, with the
credentials of each Target's own Secret, from the targets; `facts` is what it brings; `story` orders
it into chapters, and `judging` finds the present state and its cure (`advice`). Both are pure, so
that every state has a unit test.
"""
