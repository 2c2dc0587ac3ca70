from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from kdsl.app import PLACED_PLUGINS, Settings
from kdsl.base.span import Source
from kdsl.config.configuration import (
    ConfigurationResult,
    KdslConfiguration,
    Limits,
    configuration_schema,
    load_configuration,
    read_configuration,
)
from kdsl.configured import configured
from kdsl.cycle.decision import TieBreak
from kdsl.eval.scalar.meter import DEFAULT_STEPS, Steps
from kdsl.hooks.specs import Backoff
from kdsl.report.diagnostics import render

HEAD = "apiVersion: kdsl.dev/v1alpha1\nkind: KdslConfiguration\n"


def read(body: str) -> ConfigurationResult:
    return read_configuration(Source("kdsl.yaml", HEAD + body), Path("etc"))


def complaints(body: str) -> list[str]:
    """Return `line:column title` for each diagnostic."""
    result = read(body)
    assert result.configuration is None
    return [
        f"{each.span.line}:{each.span.column} {each.title}" if each.span else each.title
        for each in result.diagnostics
    ]


@pytest.mark.parametrize(
    ("body", "help_"),
    [
        ("rules: rules\n", 'write it like `{"paths": ["rules"]}`'),
        ("profiles: default\n", "a list of one is written `[default]`"),
        ("backoff: {initial: 1, max: 10s}\n", "write it like `500ms`"),
        ("backoff: {initial: 1s, max: soon}\n", "write it like `10s`"),
        ("plugins: [{name: a, requires: newest}]\n", "write it like `>=1.2,<2`"),
    ],
)
def test_a_value_of_another_form_is_shown_the_right_one(body: str, help_: str) -> None:
    (problem,) = read(body).diagnostics
    assert problem.help == (help_,)


def test_the_examples_of_the_schema_are_right() -> None:
    pending: list[object] = [configuration_schema()]
    examples = 0
    while pending:
        match pending.pop():
            case dict() as part:
                for example in part.get("examples", ()):
                    Draft202012Validator(part).validate(example)
                    examples += 1
                pending += part.values()
            case list() as items:
                pending += items
    assert examples >= 4


@pytest.mark.parametrize("kind", ["KubeSchedulerConfiguration", "Policy"])
def test_a_configuration_of_another_scheduler_is_told_apart(kind: str) -> None:
    text = f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: {kind}\nprofiles: 3\n"
    (problem,) = read_configuration(Source("kdsl.yaml", text)).diagnostics
    assert problem.help == ("`kdsl convert --write kdsl.yaml` makes rules and a configuration of it",)


def test_everything() -> None:
    result = read(
        "rules: {paths: [rules, more/a.kdsl]}\nprofiles: [default, ml]\nparallelism: 4\n"
        "percentageOfNodesToScore: 30\ntieBreak: random\nseed: 7\n"
        "plugins:\n- name: default-binder\n- {name: quota, args: {podsPerNamespace: 2}}\n"
    )
    assert result.diagnostics == ()
    configuration = result.configuration
    assert configuration is not None
    assert configuration.rules == (Path("etc/rules"), Path("etc/more/a.kdsl"))
    assert [profile.text for profile in configuration.profiles] == ["default", "ml"]
    assert configured(configuration) == Settings(
        profiles=("default", "ml"),
        seed=7,
        tie_break=TieBreak.RANDOM,
        parallelism=4,
        percentage=30,
        plugins={**PLACED_PLUGINS, "default-binder": {}, "quota": {"podsPerNamespace": 2}},
    )
    assert str(configuration.profiles[1].span) == "kdsl.yaml:4:21"


def test_limits() -> None:
    text = "limits: {ruleFiles: 9, ruleCost: 100, profileCost: 900, nodeSteps: 50, podSteps: 60, "
    text += "ruleSteps: 70, profileSteps: 80, slowHook: 2s, hook: 1m}\n"
    configuration = read(text).configuration
    assert configuration is not None
    assert configuration.limits == Limits(
        rule_files=9,
        rule_cost=100,
        profile_cost=900,
        node_steps=50,
        pod_steps=60,
        slow_hook=2 * 10**9,
        hook=60 * 10**9,
        rule_steps=70,
        profile_steps=80,
    )
    assert configured(configuration).steps == Steps(node=50, pod=60, rule=70, profile=80)
    properties = configuration_schema()["properties"]["limits"]["properties"]
    defaults = Limits()
    said = [properties[name]["default"] for name in ("nodeSteps", "podSteps", "ruleSteps", "profileSteps")]
    assert said == [defaults.node_steps, defaults.pod_steps, defaults.rule_steps, defaults.profile_steps]
    assert Steps(*said) == DEFAULT_STEPS


@pytest.mark.parametrize(
    ("text", "initial", "maximum"),
    [
        ("{initial: 1s, max: 10s}", 10**9, 10 * 10**9),
        ("{initial: 500ms, max: 2m}", 500 * 10**6, 120 * 10**9),
        ("{initial: 1h, max: 0s}", 3600 * 10**9, 0),
    ],
)
def test_backoff(text: str, initial: int, maximum: int) -> None:
    configuration = read(f"backoff: {text}\n").configuration
    assert configuration is not None
    assert configured(configuration).backoff == Backoff(initial, maximum)


def test_nothing_said_is_the_default_everywhere() -> None:
    configuration = read("").configuration
    assert configuration == KdslConfiguration()
    assert configured(configuration) == Settings()
    defaults = {
        key: rule["default"]
        for key, rule in configuration_schema()["properties"].items()
        if "default" in rule
    }
    assert defaults == {
        "parallelism": configuration.parallelism,
        "percentageOfNodesToScore": configuration.percentage,
        "tieBreak": configuration.tie_break,
        "seed": configuration.seed,
        "onInvalid": configuration.on_invalid,
    }


def test_the_schema_is_one_and_knows_the_tie_breaks() -> None:
    schema = configuration_schema()
    Draft202012Validator.check_schema(schema)
    assert schema["properties"]["tieBreak"]["enum"] == [str(each) for each in TieBreak]


def test_every_key_is_documented() -> None:
    text = (Path(__file__).parent.parent.parent / "docs/configure.md").read_text(encoding="utf-8")
    properties = configuration_schema()["properties"]
    assert [key for key in properties if f"`{key}" not in text] == []
    described = [key for key in properties if key not in ("apiVersion", "kind")]
    assert all(properties[key]["description"] for key in described)


def test_a_mistake_is_shown_with_its_cure() -> None:
    result = read("paralellism: 4\ntieBreak: Random\n")
    assert (
        render(result.diagnostics)
        == """\
error[K1131]: unknown key `paralellism`
  --> kdsl.yaml:3:1
   |
 3 | paralellism: 4
   | ^^^^^^^^^^^
   = help: did you mean `parallelism`? [fix 1]

error[K1134]: `tieBreak` must be one of `heap`, `first`, `random`
  --> kdsl.yaml:4:11
   |
 4 | tieBreak: Random
   |           ^^^^^^
   = help: did you mean `random`?

2 errors"""
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("parallelism: 0\n", ["3:14 `parallelism` must be at least 1"]),
        (
            "percentageOfNodesToScore: 101\n",
            ["3:27 `percentageOfNodesToScore` must be at most 100"],
        ),
        ("seed: -1\n", ["3:7 `seed` must be at least 0"]),
        ("seed: 2147483647\n", ["3:7 `seed` must be at most 2147483646"]),
        (f"seed: {'9' * 5_000}\n", ["3:7 `seed` is out of range"]),
        ("seed: 1e999999999\n", ["3:7 `seed` is out of range"]),
        (f"seed: -{'9' * 5_000}\n", ["3:7 `seed` is out of range"]),
        ("seed: x\nrules: []\n", ["3:7 `seed` must be a whole number", "4:8 `rules` must be a mapping"]),
        ("rules: {}\n", ["3:8 the key `rules.paths` is missing"]),
        ("rules: {paths: []}\n", ["3:16 `rules.paths` is empty"]),
        ("plugins:\n- nmae: x\n", ["4:3 unknown key `plugins[0].nmae`"]),
        (
            "plugins:\n- other: x\n",
            ["4:3 the key `plugins[0].name` is missing", "4:3 unknown key `plugins[0].other`"],
        ),
        ("plugins: [{name: a}, {name: a}]\n", ["3:29 plugin `a` is listed twice"]),
        ("profiles: [a, a]\n", ["3:15 `profiles` holds `a` twice"]),
        ("profile: a\nprofiles: [b]\n", ["4:1 `profile` and `profiles` exclude each other"]),
        ("seed: 1\nseed: 2\n", ["4:1 the key `seed` is there twice"]),
        ("seed: 1\nseed: 2\nsed: 3\n", ["4:1 the key `seed` is there twice", "5:1 unknown key `sed`"]),
        ("seed: [1\n", ["4:1 this is not YAML: did not find expected ',' or ']'"]),
        ("---\na: 1\n", ["4:1 `kdsl.yaml` holds 2 documents: a configuration is one"]),
        ("limits: {nodeSteps: 0}\n", ["3:21 `limits.nodeSteps` must be at least 1"]),
        ("limits: {rulecost: 3}\n", ["3:10 unknown key `limits.rulecost`"]),
        ("onInvalid: panic\n", ["3:12 `onInvalid` must be one of `keepLastGood`, `exit`"]),
        ("backoff: {initial: 1s}\n", ["3:11 the key `backoff.max` is missing"]),
        (
            "backoff: {initial: 5s, max: 1000ms}\n",
            ["3:10 the first wait of `backoff` is longer than the longest"],
        ),
    ],
)
def test_mistakes(body: str, expected: list[str]) -> None:
    assert complaints(body) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "`f.yaml` is empty"),
        ("- 1\n", "the configuration must be a mapping"),
        ("kind: KdslConfiguration\n", "the key `apiVersion` is missing"),
        ("apiVersion: v2\nkind: KdslConfiguration\n", "`apiVersion` must be `kdsl.dev/v1alpha1`"),
    ],
)
def test_other_documents(text: str, expected: str) -> None:
    result = read_configuration(Source("f.yaml", text))
    assert [each.title for each in result.diagnostics] == [expected]


def test_two_missing_keys_are_two_mistakes() -> None:
    result = read_configuration(Source("f.yaml", "seed: 1\n"))
    assert [each.title for each in result.diagnostics] == [
        "the key `apiVersion` is missing",
        "the key `kind` is missing",
    ]
    assert result.diagnostics[0].help == ("add `apiVersion: kdsl.dev/v1alpha1` here",)


@pytest.mark.parametrize("seed", ["-1", "9" * 32, "9" * 5_000])
def test_the_range_of_seeds_is_told(seed: str) -> None:
    (found,) = read_configuration(Source("kdsl.yaml", f"{HEAD}seed: {seed}\n")).diagnostics
    assert (found.code, found.label) == ("K1134", "")
    assert found.help == ("write a number from 0 to 2147483646",)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "kdsl.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + HEAD.encode() + b"rules: {paths: [r]}\n")
    configuration = load_configuration(path).configuration
    assert configuration is not None and configuration.rules == (tmp_path / "r",)
    path.write_bytes(b"\xff")
    assert [each.code for each in load_configuration(path).diagnostics] == ["K1130"]
    assert "no such file" in load_configuration(tmp_path / "none.yaml").diagnostics[0].title


keys = st.sampled_from(
    ["apiVersion", "kind", "rules", "paths", "profile", "profiles", "plugins", "name", "args", "seed", "x"]
)
values = st.recursive(
    st.one_of(
        st.sampled_from(
            ["kdsl.dev/v1alpha1", "KdslConfiguration", "heap", "''", "~", "1", "2.0", "-1", ".inf"]
        ),
        st.just("true"),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.dictionaries(keys, inner, max_size=4).map(
            lambda entries: "{" + ", ".join(f"{key}: {value}" for key, value in entries.items()) + "}"
        ),
    ),
    max_leaves=10,
)


@settings(max_examples=200, deadline=None)
@given(values)
def test_no_text_raises_and_every_refusal_has_a_place(text: str) -> None:
    result = read_configuration(Source("f.yaml", text))
    assert (result.configuration is None) == bool(result.diagnostics)
    assert all(each.span or each.where for each in result.diagnostics)
