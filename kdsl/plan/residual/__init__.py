"""Partial evaluation: what is left of a rule once a kind of pod is known.

A rule that is asked for every pod goes through the pod's terms and constraints each time, to the same effect
for all pods of a kind. So for a kind that comes again and again the rule is rewritten: what follows from the
pod and the catalog becomes constants, loops over such lists become their bodies, conditions that are decided
go. The residual rule is a rule like any other and is compiled by the same back ends.
"""
