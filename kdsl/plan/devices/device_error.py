"""The error of a device's expression, with its place."""

from __future__ import annotations

from kdsl.base.reasons import shortened
from kdsl.base.span import Span
from kdsl.check.model.sharing import DEVICES
from kdsl.eval.values import EvalError
from kdsl.hooks.faults import Fault
from kdsl.hooks.status import Code, Status


class DeviceError(EvalError):
    """An expression of a device has no value that can be used. `site` is its `file:line:col`; `field` is the
    field that it sets, if any.
    """

    def __init__(
        self, message: str, code: tuple[tuple[str, int, str], ...] = (), site: str = "", field: str = ""
    ) -> None:
        super().__init__(message, code)
        self.site, self.field = site, field


def located(error: EvalError, span: Span, field: str = "") -> DeviceError:
    """Return the error with the place of the expression; the first place, the innermost, stays."""
    if isinstance(error, DeviceError) and error.site:
        return error
    return DeviceError(str(error), error.code, str(error.span or span), field)


def fault_of(error: EvalError, kind: str = "") -> Fault:
    """Return the error as a fault, with its place if that is known; `kind` is the kind of device."""
    message = f"{kind}: {error.message}" if kind else error.message
    site = error.site if isinstance(error, DeviceError) else ""
    return Fault(DEVICES, message, site, code=error.code)


def rejection(code: Code, fault: Fault) -> Status:
    """Return the rejection of a node or a pod because an expression of a device failed."""
    sites = (fault.site,) if fault.site else ()
    return Status(code, (fault.message,), sites=sites, faults=(fault,))


def one_line(error: EvalError) -> str:
    """Return the error in one line, with its place if that is known."""
    site = fault_of(error).site
    return shortened(f"{error.message} ({site})") if site else error.message
