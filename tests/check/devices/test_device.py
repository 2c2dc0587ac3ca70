from __future__ import annotations

from kdsl.base.span import Source
from kdsl.check.checker import MAX_DERIVED_DEVICES, CheckResult, check_program
from kdsl.check.model.devices import CheckedDevice
from kdsl.check.model.sharing import CheckedSharing, constant_text
from kdsl.check.model.typed import Const
from kdsl.lang.loader import load_sources

BASE = """kdsl 1
package base

param shared = 7

device Base {
  kind word
  record "cards"
  param word = "Base"
  resource card = "v.com/base"
  param size = shared
  inventory for row in lists.range(size) {
    set id = string(row)
    set slots = size
    set memory = size
    set cores = 100
  }
  request { set count = container.amounts[?card].orValue(0) }
  charge {
    set memory = 1
    set cores = 1
  }
  choose first
}
"""


def check(*texts: str) -> CheckResult:
    loaded = load_sources([Source(f"{number}.kdsl", text) for number, text in enumerate(texts)])
    assert not loaded.diagnostics
    return check_program(loaded.program)


def devices(*texts: str) -> dict[str, CheckedDevice]:
    rules = check(*texts).rules
    assert rules is not None
    return dict(rules.devices)


def values(device: CheckedDevice) -> dict[str, object]:
    """Return the parameters that are plain constants."""
    return {
        param.variable.name: param.value.value for param in device.params if isinstance(param.value, Const)
    }


def test_parameters_of_a_derived_device() -> None:
    derived = """kdsl 1
package derived
import base

param shared = 9

device One extends base.Base {
  set word = "One"
  set card = "v.com/one"
}

device Two extends One {
  set word = "Two"
  set size = shared
}
"""
    found = devices(BASE, derived)
    assert values(found["base.Base"]) == {"word": "Base", "card": "v.com/base", "size": 7}
    assert values(found["derived.One"]) == {"word": "One", "card": "v.com/one", "size": 7}
    assert values(found["derived.Two"]) == {"word": "Two", "card": "v.com/one", "size": 9}
    assert found["derived.Two"].resources == ("card",)


def test_a_mistake_of_the_base_is_reported_once() -> None:
    broken = BASE.replace("set cores = 100", "set cores = node.colour")
    alone = check(broken)
    with_derived = check(broken + '\ndevice More extends Base { set word = "More" }\n')
    assert alone.rules is None
    assert [each.title for each in alone.diagnostics] == ["`node` has no field `colour`"]
    assert [each.title for each in with_derived.diagnostics] == [each.title for each in alone.diagnostics]


def test_the_number_of_derived_devices_is_limited() -> None:
    derived = [
        f'device More{number} extends Base {{ set word = "{number}" }}'
        for number in range(MAX_DERIVED_DEVICES + 2)
    ]
    assert check(BASE + "\n".join(derived[:MAX_DERIVED_DEVICES])).rules is not None
    (problem,) = check(BASE + "\n".join(derived)).diagnostics
    assert problem.code == "K0506"
    assert problem.span is not None and problem.span.text == f"More{MAX_DERIVED_DEVICES}"


def test_what_is_proven_holds_in_its_section_only() -> None:
    text = BASE.replace(
        "  choose first",
        """  admit {
    applies when card in container.limits
    let amount = container.limits[card]
    set requests[card] = amount
  }
  annotate "x": pod.annotations["y"] where "y" in pod.annotations
  choose first""",
    )
    assert check(text).diagnostics == ()
    later = check(
        text.replace(
            "set requests[card] = amount", "set requests[card] = 1\n    let again = container.limits[card]"
        )
    )
    assert [each.code for each in later.diagnostics] == ["K0204"]


def test_texts_are_known_that_are_written_out_or_joined_of_such_parameters() -> None:
    text = BASE.replace(
        '  resource card = "v.com/base"',
        '  param domain = "v.com"\n  resource card = domain + "/base"\n  resource many = domain.replace(".", "/")',
    )
    device = devices(text)["base.Base"]
    assert (constant_text(device, device.kind), constant_text(device, device.record)) == ("Base", "cards")
    assert CheckedSharing((device,), (), ()).resources == ("v.com/base",)
