"""The memo of rules: answers by signature and node class, valid while their inputs stay the same.

It is derived from the reads of rules: they give the signature of a pod, the node class, and the changes that
matter.
"""
