"""The statements of profiles about devices: `devices A, B` and `set Devices.s = v`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kdsl.base.diagnostic import Diagnostic, Label, Severity, did_you_mean
from kdsl.base.span import Span
from kdsl.check.expressions.mismatch import listing
from kdsl.check.expressions.scope import SlotFrame
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.devices import CheckedDevice
from kdsl.check.model.rule_set import CheckedParam
from kdsl.check.model.sharing import CARD_POLICIES, DEVICES, SETTINGS, WORDS, constant_text
from kdsl.check.model.typed import UNDECLARED, Const, Var
from kdsl.check.model.types import ERROR, INT, STRING
from kdsl.check.names.declarations import Declarations, Home, Located
from kdsl.check.names.functions import Functions
from kdsl.check.profiles.sharing import LARGEST, DevicesDraft
from kdsl.lang.profile_tree import SetParam, UseDevices
from kdsl.lang.tree import Device, Name

_WHY: Final = {
    "kind": "a request would be for either",
    "record": "each would take the other's cards for its own",
}


@dataclass(frozen=True, slots=True)
class ProfileDevices:
    """Folds those statements; `checked` are the devices by qualified name, without broken ones."""

    checked: Mapping[str, CheckedDevice]
    declarations: Declarations
    functions: Functions
    diagnostics: list[Diagnostic]

    def use(self, draft: DevicesDraft | None, statement: UseDevices, home: Home) -> DevicesDraft:
        """Replace the devices of the profile; settings that were set stay."""
        kinds: list[tuple[Located[Device], Name]] = []
        for name in statement.names:
            device = self.declarations.find(Device, name.text, home)
            if device is None:
                self.diagnostics.append(self.declarations.undeclared(Device, name, home))
            elif any(each.qualified == device.qualified for each, _ in kinds):
                title = f"the profile has device `{device.name}` already"
                why = "its cards would be counted twice"
                self.diagnostics.append(Diagnostic(CheckCode.USED_TWICE, title, name.span, why))
            else:
                self._refuse_conflict(kinds, device, name)
                kinds.append((device, name))
        return DevicesDraft(tuple(kinds), statement, {} if draft is None else draft.sets)

    def _refuse_conflict(
        self, kinds: Sequence[tuple[Located[Device], Name]], device: Located[Device], name: Name
    ) -> None:
        """Report a device with the kind, or the record, of another device of the profile."""
        new = self.checked.get(device.qualified)
        for located, first in kinds:
            old = self.checked.get(located.qualified)
            if new is None or old is None:
                continue
            for word, one, other in (("kind", old.kind, new.kind), ("record", old.record, new.record)):
                text = constant_text(new, other)
                if text and text == constant_text(old, one):
                    title = f"devices `{first.text}` and `{name.text}` have the same {word} `{text}`"
                    help_ = (f"leave one of them out, or give one another `{word}`",)
                    label = (Label(first.span, "the first is here"),)
                    self.diagnostics.append(
                        Diagnostic(
                            CheckCode.USED_TWICE, title, name.span, _WHY[word], secondary=label, help=help_
                        )
                    )
                    return

    def set(self, draft: DevicesDraft, statement: SetParam, home: Home) -> DevicesDraft:
        """Set a setting."""
        name = statement.param
        if name.text not in SETTINGS:
            help_ = did_you_mean(name.text, SETTINGS) or listing("they have", sorted(SETTINGS))
            title = f"`{DEVICES}` have no setting `{name.text}`"
            self.diagnostics.append(
                Diagnostic(CheckCode.UNKNOWN_RULE, title, name.span, "not a setting", help=help_)
            )
            return draft
        wanted = STRING if isinstance(SETTINGS[name.text], str) else INT
        what = f"{DEVICES}.{name.text}"
        value = self.functions.constant_value(statement.value, wanted, what, home, SlotFrame())
        if value.type == ERROR:
            return draft
        least = 1 if name.text == "weight" else 0
        number = value.value if isinstance(value, Const) else None
        if number is None or (isinstance(number, int) and not least <= number <= LARGEST):
            kind = "a text" if wanted == STRING else f"a number of {least} to {LARGEST}"
            title = f"`{what}` must be written as {kind}"
            self.diagnostics.append(Diagnostic(CheckCode.WEIGHT_RANGE, title, value.span, "this is not"))
            return draft
        words = WORDS.get(name.text)
        if words is not None and number not in words:
            title = f"`{what}` must be one of {', '.join(f'`{word}`' for word in words)}"
            self.diagnostics.append(Diagnostic(CheckCode.WEIGHT_RANGE, title, value.span, "this is not"))
            return draft
        if name.text == "cardPolicy":
            self.diagnostics.extend(_mistyped(str(number), value.span))
        variable = Var(name.text, UNDECLARED, type=wanted, time=value.time, reads=value.reads, span=name.span)
        return replace(draft, sets={**draft.sets, name.text: CheckedParam(variable, value)})


def _mistyped(policy: str, span: Span) -> Iterator[Diagnostic]:
    """Warn of words that are nearly card policies: they count as `spread`, and in a list not at all."""
    listed = policy.split(",")
    is_list = len(listed) > 1
    for word in (each.strip() for each in listed) if is_list else listed:
        near = () if word in CARD_POLICIES else did_you_mean(word, CARD_POLICIES)
        if near:
            effect = "they leave it out" if is_list else "to them it means `spread`"
            title = f"`{word}` is no card policy that the shipped devices know: {effect}"
            yield Diagnostic(CheckCode.WEIGHT_RANGE, title, span, severity=Severity.WARNING, help=near)
