"""Runs Kubernetes' own suite through a virtual node and straight, and compares.

Begin with `cli`. `arrange` starts the clusters, in which `standins` stand for the suite's images;
`selection` says which specs are run and which may differ, `session` has `suite` run them both ways,
`whole` group after group, and `comparing` judges.
"""
