"""What is known of every node for a kind of pod, and stays known while what it was computed from stays the
same.

Nothing here is written by hand for a rule: what rules read tells which pods are of one kind, which nodes look
alike, and which changes matter.
"""
