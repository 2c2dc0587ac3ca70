"""Devices as programs: the cards of nodes, admission, and the cards that a pod gets on a node.

`placing.py` computes the cards of a pod from the pod, the node and the usage of its cards; `answers.py` keeps
results by pod signature and node class. `plugin.py` takes part in the cycle; `locks.py` and `handshakes.py`
are the protocols with device plugins; `waking.py` has the events that may free cards.
"""
