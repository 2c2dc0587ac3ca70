"""Partial evaluation: the residual rule for one signature.

A rule that runs for every pod goes through the pod's terms and constraints each time, with equal results for
pods of one signature. So the rule is rewritten for a signature that is repeated often: values that depend on
the pod and the catalog become constants, loops over constant lists become their bodies, decided conditions
are removed. The residual rule is an ordinary rule, compiled by the same back ends.
"""
