"""Why a pod is pending or has its node: all rules on all nodes, the deciding values, and possible remedies.

This package names no rule: values come from the checked expressions of a rule, and cures are found by running
the rule again on a changed pod or cluster.
"""
