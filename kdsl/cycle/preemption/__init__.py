"""Preemption: finds a node on which evicting some pods makes room, and the pods to evict.

The mechanics are here: the dry runs, the budgets and the texts. The profile's `preemption` decides who may
preempt, which pods go and which node is taken, through the hooks of `PreemptionHooks`.
"""

from kdsl.cycle.preemption.preempt import Preemption

__all__ = ["Preemption"]
