"""The extension points: hook specifications, the plugin manager and the frozen `HookTable`. The only importer
of pluggy.

A plugin needs only this package: `hookimpl` to mark its methods, the types of their answers, and
`PluginContext`.
"""

from kdsl.hooks.context import (
    Binder,
    ClaimWriter,
    DeviceConditions,
    Manifests,
    Permits,
    PluginContext,
    VolumeBinder,
)
from kdsl.hooks.errors import PluginError
from kdsl.hooks.faults import Fault
from kdsl.hooks.specs import (
    AddedScores,
    Candidate,
    Narrowed,
    Nominated,
    QueuedPod,
    SchedulingHooks,
    Wait,
    hookimpl,
)
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import SUCCESS, Code, Status, StatusColumn

__all__ = [
    "SUCCESS",
    "AddedScores",
    "Binder",
    "Candidate",
    "ClaimWriter",
    "Code",
    "CycleState",
    "DeviceConditions",
    "Fault",
    "Manifests",
    "Narrowed",
    "Nominated",
    "Permits",
    "PluginContext",
    "PluginError",
    "QueuedPod",
    "SchedulingHooks",
    "Status",
    "StatusColumn",
    "VolumeBinder",
    "Wait",
    "hookimpl",
]
