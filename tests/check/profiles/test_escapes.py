"""Ways round what the platform demands that a team might try, each beside what it may do after all."""

from __future__ import annotations

import pytest
from kdsl.base.span import Source
from kdsl.check.checker import check_program
from kdsl.check.model.codes import CheckCode
from kdsl.lang.discovery import read_sources
from kdsl.lang.loader import load_sources

from tests.check.programs import ROOT, found, placed_plugins

_ALL = (
    "tighten, add predicates, add scores, reweight 1 to 9, order devices, disable predicates, disable scores"
)
_PLATFORM = """
mandatory predicate Real { param label = "out" require !(label in node.labels) else unresolvable "no" }
predicate Small { param limit = 5 require node.podCount < limit else "full" }
"""
_DEFAULT = 'profile default extends {base} {{ scheduler "default-scheduler" add predicate Real add predicate Small {more} }}'
_KUBERNETES = "import kubernetes.v1_36 as kubernetes"


def _findings(
    team: str,
    imports: str = "import platform",
    base: str = "kubernetes.default",
    platform_imports: str = _KUBERNETES,
    files: str = "teams/a/**.kdsl",
    path: str = "teams/a/a.kdsl",
    package: str = "a",
    more: str = "",
) -> list[tuple[str, str]]:
    """Return the code and the text of what is found in the file of a team that has every right."""
    block = f'team a {{ owns pod.namespace == "a" files "{files}" may {_ALL} }}'
    profile = _DEFAULT.format(base=base, more=more)
    loaded = load_sources(
        [
            Source(
                "platform/p.kdsl",
                f"kdsl 1\npackage platform\n{platform_imports}\n{block}\n{_PLATFORM}\n{profile}",
            ),
            Source(path, f"kdsl 1\npackage {package}\n{imports}\n{team}"),
        ],
        lambda: [read_sources([ROOT / "rules"])[0]],
    )
    assert not loaded.diagnostics, loaded.diagnostics
    return [found(each) for each in check_program(loaded.program, externals=placed_plugins()).diagnostics]


def test_a_profile_that_the_platform_has_replaced_is_no_base() -> None:
    profile = "profile a extends {} {{ }}"
    assert _findings(profile.format("platform.default")) == []
    assert _findings(profile.format("kubernetes.default"), _KUBERNETES) == [
        (CheckCode.TEAM_BASE, "kubernetes.default")
    ]


def test_a_profile_that_stands_beside_the_platforms_is_a_base() -> None:
    both = "import devices.profiles\n" + _KUBERNETES
    imports = "import platform\nimport devices.profiles"
    assert _findings("profile a extends profiles.gpu { }", imports, platform_imports=both) == []


def test_profiles_of_a_library_come_by_the_platform_alone() -> None:
    profile = "profile a extends platform.default { }"
    imports = "import platform\nimport policies.binpacking"
    assert _findings(profile, imports) == [(CheckCode.PLATFORM_ONLY, "policies.binpacking")]
    both = f"{_KUBERNETES}\nimport policies.binpacking"
    assert _findings(profile, imports, platform_imports=both) == []


def test_profiles_that_a_library_imports_count_and_its_rules_do_not() -> None:
    profile = "profile a extends platform.default { }"
    imports = "import platform\nimport policies.fragmentation"
    assert {code for code, _ in _findings(profile, imports)} == {CheckCode.PLATFORM_ONLY}
    assert _findings(profile, "import platform\nimport kubernetes.most_allocated") == []


@pytest.mark.parametrize(
    ("statement", "code"),
    [("set Real.label = 'none'", CheckCode.MANDATORY), ("set Small.limit = 500", None)],
)
def test_a_mandatory_predicate_keeps_its_parameters(statement: str, code: CheckCode | None) -> None:
    assert _findings(f"profile a extends platform.default {{ {statement} }}") == (
        [] if code is None else [(code, statement)]
    )


def test_what_is_mandatory_for_the_team_is_its_own() -> None:
    own = "mandatory predicate Mine { param n = 1 require node.podCount < n else 'mine' }"
    changed = "profile a extends platform.default { add predicate Mine set Mine.n = 2 }"
    assert _findings(f"{own} {changed}") == []


@pytest.mark.parametrize(
    ("devices", "code"),
    [
        ("nvidia.Nvidia, hygon.Dcu", None),
        ("hygon.Dcu, nvidia.Nvidia", None),
        ("amd.Amd, hygon.Dcu, nvidia.Nvidia", None),
        ("nvidia.Nvidia", CheckCode.NOT_GRANTED),
    ],
)
def test_devices_may_be_ordered_and_added(devices: str, code: CheckCode | None) -> None:
    names = "\nimport devices.nvidia\nimport devices.hygon"
    result = _findings(
        f"profile a extends platform.default {{ devices {devices} }}",
        f"import platform\nimport devices.amd{names}",
        platform_imports=_KUBERNETES + names,
        more="devices nvidia.Nvidia, hygon.Dcu",
    )
    assert result == ([] if code is None else [(code, f"devices {devices}")])


def test_a_device_of_the_team_would_take_resources_from_the_platforms_predicates() -> None:
    own = "device Mine extends nvidia.Nvidia { set gpu = 'cpu' set kind = 'X' set record = 'x.example/y' }"
    result = _findings(
        f"{own} profile a extends platform.default {{ devices Mine }}",
        "import platform\nimport devices.nvidia",
    )
    assert (CheckCode.NOT_GRANTED, "Mine") in result


@pytest.mark.parametrize(
    ("files", "path", "is_found"),
    [
        ("teams/a/*.kdsl", "teams/a/sub/x.kdsl", True),
        ("teams/a/*.kdsl", "platform/teams/a/sub/x.kdsl", True),
        ("teams/a/**/*.kdsl", "teams/a/sub/x.kdsl", False),
        ("teams/a/*.kdsl", "teams/ab/x.kdsl", False),
        ("teams/a-*.kdsl", "teams/b.kdsl", False),
        ("*.kdsl", "platform/sub/x.kdsl", False),
    ],
)
def test_what_stands_in_the_folder_of_a_team_is_not_the_platforms(
    files: str, path: str, is_found: bool
) -> None:
    result = _findings("", "", files=files, path=path, package="other")
    assert ((CheckCode.TEAM_FILES, f'files "{files}"') in result) is is_found


def test_a_package_is_the_owners_of_most_of_its_files() -> None:
    block = 'team a { owns true files "teams/a/*.kdsl" }'
    platform = [Source(f"{name}.kdsl", f"kdsl 1\npackage p\n{block if name == 'x' else ''}") for name in "xy"]
    team = [Source(f"teams/a/{name}.kdsl", "kdsl 1\npackage p") for name in "abc"]
    for sources, text in (([*platform, team[0]], "the platform"), ([*platform, *team], "team `a`")):
        problems = check_program(load_sources(sources).program).diagnostics
        assert {each.title.partition("'s")[0] for each in problems} == {f"package `p` is {text}"}
        assert len(problems) == (1 if text == "the platform" else 2)
