"""The behaviours by name: the values of `--behaviour`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from kdsl.extender.hami.behaviour import HamiBehaviour
from kdsl.extender.hami.options import HamiOptions
from kdsl.extender.ports import Behaviour
from kdsl.extender.rules import RulesBehaviour
from kdsl.live.services import Host
from kdsl.live.watching.needs import Needs

NO_NEEDS: Final = Needs(())


@dataclass(frozen=True, slots=True)
class BehaviourKind:
    """A behaviour: its factory, and the resources it watches besides those of the rules."""

    make: Callable[[Host], Behaviour]
    needs: Needs = NO_NEEDS


def _hami(host: Host) -> Behaviour:
    """Return HAMi's behaviour for the pods of the first profile's scheduler."""
    return HamiBehaviour(host, HamiOptions(host.made().tables[0].scheduler))


BEHAVIOURS: Final[Mapping[str, BehaviourKind]] = MappingProxyType(
    {"rules": BehaviourKind(RulesBehaviour), "hami": BehaviourKind(_hami)}
)
