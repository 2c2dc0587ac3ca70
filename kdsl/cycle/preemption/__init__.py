"""Preemption: finds a node that does without some of its pods, and the pods it does without.

What is mechanical is here: the dry runs, the budgets and the texts. Who may ask, who goes and which node is
taken says the profile's `preemption`, through the hooks of `PreemptionHooks`.
"""

from kdsl.cycle.preemption.preempt import Preemption

__all__ = ["Preemption"]
