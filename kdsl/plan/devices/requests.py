"""What containers ask for."""

from __future__ import annotations

from dataclasses import dataclass

from kdsl.check.model.devices import CheckedDevice
from kdsl.cluster.devices.pods import DeviceContainer, DevicePod
from kdsl.plan.compile.scope import Functions
from kdsl.plan.devices.section import FieldsProgram


@dataclass(frozen=True, slots=True)
class Request:
    """What one container asks of one kind of device. Fields are those of the `DeviceRequest` view."""

    kind: str
    count: int = 0
    memory: int = 0
    percent: int = 0
    cores: int = 0


class RequestProgram:
    """A compiled `request`."""

    def __init__(self, device: CheckedDevice, kind: str, functions: Functions) -> None:
        self._kind = kind
        self._fields = FieldsProgram(device.request, device, functions)

    def request(self, pod: DevicePod, container: DeviceContainer) -> Request | None:
        """Return what a container asks for, None where that is no card; EvalError where it has no value."""
        fields = self._fields
        frame = fields.section.frame(pod=pod, container=container)
        count = fields.integer("count", frame)
        if count <= 0:
            return None
        memory, percent, cores = (fields.integer(name, frame) for name in ("memory", "percent", "cores"))
        return Request(self._kind, count, memory, percent, cores)
