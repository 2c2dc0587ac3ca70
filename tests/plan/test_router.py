"""The profile of a pod."""

from __future__ import annotations

from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.pod import PodInfo
from kdsl.plan import router as module
from kdsl.plan.router import ForcedProfile, ProfileRouter
from pytest import MonkeyPatch

from tests.check.programs import rules_of

from .team_rules import PLATFORM, check_files

_TEAMS = {
    "platform/teams.kdsl": """
    team ml {
      owns pod.namespace.startsWith("ml-") || pod.labels[?"team"].orValue("") == "ml"
      files "teams/ml/*.kdsl"
      priority 20
      may tighten
    }
    team web { owns pod.namespace in ["shop", "ml-web"] files "teams/web/*.kdsl" }
    team idle { owns pod.serviceAccount == "idle" files "teams/idle/*.kdsl" }
    """,
    "platform/profiles.kdsl": PLATFORM,
    "teams/ml/ml.kdsl": 'profile ml extends platform.base {} profile big extends platform.base { scheduler "big" }',
    "teams/idle/idle.kdsl": "",
    "teams/web/web.kdsl": 'profile shop extends platform.base { scheduler "shop" }',
}


def _router(*names: str) -> ProfileRouter:
    rules = rules_of(check_files(_TEAMS))
    return ProfileRouter(rules, names or rules.profiles)


def _profile(
    router: ProfileRouter, namespace: str = "x", scheduler: str = "default-scheduler", **labels: str
) -> str | None:
    return router.profile_of(PodInfo("p", namespace, labels=FrozenMap(labels), scheduler_name=scheduler))


def test_pods_of_nobody_get_the_default() -> None:
    assert _profile(_router()) == "platform.base"


def test_pods_of_a_team_get_its_profile() -> None:
    router = _router()
    assert _profile(router, "ml-a") == "teams.ml.ml"
    assert _profile(router, team="ml") == "teams.ml.ml"
    assert _profile(router, "shop") == "teams.web.shop"


def test_pods_that_differ_in_labels_that_no_team_reads_share_an_owner() -> None:
    router = _router()
    assert [_profile(router, team="ml", job=job) for job in "abc"] == ["teams.ml.ml"] * 3
    assert len(router._owners) == 1


def test_the_higher_priority_has_a_pod_of_two() -> None:
    assert _profile(_router(), "ml-web") == "teams.ml.ml"


def test_a_pod_may_ask_for_another_profile_of_its_team_or_the_platforms() -> None:
    router = _router()
    assert _profile(router, "ml-a", "big") == "teams.ml.big"
    assert _profile(router, "ml-a", "packed") == "platform.packed"
    assert _profile(router, "x", "packed") == "platform.packed"


def test_a_profile_of_another_team_is_not_to_be_had() -> None:
    router = _router()
    assert _profile(router, "x", "big") == "platform.base"
    assert _profile(router, "shop", "big") == "teams.web.shop"


def test_other_schedulers_pods_are_left_alone() -> None:
    assert _profile(_router(), "ml-a", "volcano") is None


def test_a_team_without_a_profile_gets_the_default() -> None:
    pod = PodInfo("p", "x", service_account="idle")
    assert (_router().owner_of(pod), _router().profile_of(pod)) == ("idle", "platform.base")


def test_only_profiles_that_run_are_chosen() -> None:
    router = _router("platform.base", "teams.ml.big")
    assert _profile(router, "ml-a") == "platform.base"
    assert _profile(router, "ml-a", "big") == "teams.ml.big"
    assert _profile(router, "x", "packed") is None


def test_a_profile_with_the_same_name_replaces_the_one_it_extends() -> None:
    text = PLATFORM + 'profile ours extends base { scheduler "default-scheduler" }'
    rules = rules_of(check_files({"platform/profiles.kdsl": text}))
    assert _profile(ProfileRouter(rules, rules.profiles)) == "platform.ours"


def test_owners_are_looked_up_once_per_signature(monkeypatch: MonkeyPatch) -> None:
    asked: list[str] = []
    compile_owns = module.compile_owns

    def counting(*args: object) -> module.Owns:
        owns = compile_owns(*args)
        return lambda pod, note: asked.append(pod.name) or owns(pod, note)

    monkeypatch.setattr(module, "compile_owns", counting)
    monkeypatch.setattr(module, "CACHED_OWNERS", 2)
    router = _router()
    for name, namespace in (
        ("a", "x"),
        ("b", "x"),
        ("c", "y"),
        ("d", "x"),
        ("e", "z"),
        ("f", "x"),
        ("g", "y"),
    ):
        router.owner_of(PodInfo(name, namespace))
    # Two were kept when `z` came in, and are asked for again.
    assert list(dict.fromkeys(asked)) == ["a", "c", "e", "f", "g"]


def test_a_forced_profile_takes_every_pod() -> None:
    assert ForcedProfile("p").profile_of(PodInfo("x", scheduler_name="volcano")) == "p"
