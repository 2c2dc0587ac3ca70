"""Why a pod is pending, or why it is where it is: all rules on all nodes, what decided, and what would help.

Nothing here knows a rule by its name: values come from the checked expressions of a rule, cures are found by
asking it again about a changed pod or cluster.
"""
