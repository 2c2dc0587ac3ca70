"""Devices as programs: cards of nodes, admission, and which cards a pod would get on a node.

Everything is a pure function of a pod, a node and what of its cards is taken; nothing here remembers.
"""
