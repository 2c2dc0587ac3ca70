"""HAMi's device configuration as rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from kdsl.app import check_text
from kdsl.base.diagnostic import Severity
from kdsl.base.span import Source
from kdsl.config.codes import ConfigCode
from kdsl.config.imports import import_configuration

EVERYTHING = """
nvidia:
  resourceCountName: nvidia.com/vgpu
  defaultMemory: 1000
  overwriteEnv: true
  deviceSplitCount: 10
metax: {resourceCountName: metax-tech.com/gpu, resourceVCountName: metax-tech.com/part, sgpuTopologyAware: true}
iluvatars:
- {chipName: MR-V100, commonWord: MR-V100, resourceCountName: iluvatar.ai/one}
- {commonWord: BI-V200, resourceCountName: iluvatar.ai/two}
vnpus:
  hamiVnpuCore: true
  configs:
  - commonWord: Ascend910C
    superPod: true
    aiCore: 20
    templates: [{name: large, memory: 32768, aiCore: 10}, {name: small, memory: 16384}]
"""


def test_values_become_parameters(tmp_path: Path) -> None:
    result = import_configuration(Source("my-config.yaml", EVERYTHING))
    assert not result.diagnostics
    assert result.converted is not None
    text = " ".join(result.converted.text.split())
    for expected in (
        "package my_config",
        'device Nvidia extends nvidia.Nvidia { set gpu = "nvidia.com/vgpu" set defaultMemory = 1000 set overwriteEnv = true }',
        'device MetaxSgpu extends metax_sgpu.MetaxSgpu { set sgpu = "metax-tech.com/part" set topologyAware = true }',
        'device BIV200 extends iluvatar.MrV100 { set chip = "BI-V200" set vgpu = "iluvatar.ai/two" }',
        "set allowsSoft = true set isModular = true",
        'set templates = {16384: "small", 32768: "large"}',
        "profile hami extends profiles.hami",
    ):
        assert expected in text, result.converted.text
    checked = check_text(tmp_path / "my-config.kdsl", result.converted.text)
    assert checked.rules is not None, checked.diagnostics
    sharing = checked.rules.profiles["my_config.hami"].sharing
    assert sharing is not None and "nvidia.com/vgpu" in sharing.resources


MISTAKES = {
    "nvidia: {resourceCountNam: x}": "HAMi's device configuration has no key `resourceCountNam` here",
    "nvidia: {defaultMemory: lots}": "`defaultMemory` must be a whole number",
    "nvidia: {}\nnvida: {}": "HAMi's device configuration has no key `nvida` here",
    "iluvatars: [{resourceCountName: x}]": "a chip needs a `commonWord`",
    "iluvatars: [{commonWord: ''}]": "a chip needs a `commonWord`",
    "vnpus: {configs: [{commonWord: A}, {commonWord: A}]}": "there are two of `commonWord: A`",
    "vnpus: {configs: [{commonWord: A, templates: {name: t, memory: 1}}]}": "`templates` must be a list",
    "amd: {resourceCountName: a.com/gpu, resourceMemoryName: a.com/gpu}": (
        "`resourceMemoryName` and `resourceCountName` are the same resource"
    ),
    "vnpus: {configs: [{commonWord: A, resourceName: a/b, resourceMemoryName: a/b}]}": (
        "`resourceMemoryName` and `resourceName` are the same resource"
    ),
    "nvidia: {resourceCountName: nvidia gpu}": "`resourceCountName` is no name of an extended resource",
    "nvidia: {}\nvnpus: {configs: []}": "the device configuration names no resource",
    "nvidia: {resourceCountName: x}\n---\nhygon: {}": "`d.yaml` holds 2 documents: a configuration is one",
    "vnpus: {configs: [{commonWord: A, templates: [{name: t}]}]}": (
        "a template must be a `name` and a whole number as `memory`"
    ),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_have_a_place(text: str) -> None:
    result = import_configuration(Source("d.yaml", text))
    assert result.converted is None
    assert [each.title for each in result.diagnostics] == [MISTAKES[text]]
    assert all(each.span for each in result.diagnostics)


def test_of_templates_with_equal_memory_the_first_counts() -> None:
    templates = "[{name: t, memory: 1}, {name: u, memory: 1}]"
    text = f"vnpus: {{configs: [{{commonWord: A, templates: {templates}}}]}}"
    result = import_configuration(Source("d.yaml", text))
    assert result.converted is not None and 'set templates = {1: "t"}' in result.converted.text
    ((found, severity),) = [(each.title, each.severity) for each in result.diagnostics]
    assert (found, severity) == ("templates `t` and `u` have the same memory", Severity.WARNING)


def test_chips_of_similar_words_are_several_devices() -> None:
    chips = "[{commonWord: A-1}, {commonWord: A1}, {commonWord: Nvidia}, {commonWord: A/1}]"
    result = import_configuration(
        Source("d.yaml", f"vnpus: {{configs: {chips}}}\nnvidia: {{defaultCores: 5}}")
    )
    assert result.converted is not None, result.diagnostics
    assert "devices A1, A1_2, Nvidia_2, A1_3, Nvidia\n" in result.converted.text


def test_a_key_of_an_older_version_stands_back() -> None:
    keys = "{resourceNameDRSGCU: enflame.com/new, resourceNameVGCU: enflame.com/old}"
    result = import_configuration(Source("d.yaml", f"enflame: {keys}"))
    assert result.converted is not None and 'set drsGcu = "enflame.com/new"' in result.converted.text


def test_a_config_map_is_not_the_text_in_it() -> None:
    text = "kind: ConfigMap\nmetadata: {name: d, namespace: hami}\ndata: {device-config.yaml: 'nvidia: {}'}\n"
    (found,) = import_configuration(Source("d.yaml", text)).diagnostics
    assert found.help[0] == (
        "`kubectl get configmap d -n hami -o 'jsonpath={.data.device-config\\.yaml}' > device-config.yaml`"
        " writes its text to a file"
    )


OLD = """
nvidia:
  resourceCountName: nvidia.com/vgpu
  deviceSplitCount: 10
  deviceMemoryScaling: 1.5
  knownMigGeometries:
  - models: [ "A30" ]
    allowedGeometries: [[{name: 1g.6gb, memory: 6144, count: 4}]]
vnpus:
- chipName: 910B3
  commonWord: Ascend910B3
  resourceName: huawei.com/Ascend910B
  memoryAllocatable: 65536
  memoryCapacity: 65536
  aiCore: 20
  topologyPairs: ["1,2,3"]
  templates: [{name: vir05_1c_16g, memory: 16384, aiCore: 5, aiCPU: 1}]
"""


def test_a_configuration_of_an_older_version_is_converted() -> None:
    result = import_configuration(Source("old.yaml", OLD))
    assert result.converted is not None
    text = " ".join(result.converted.text.split())
    assert 'device Nvidia extends nvidia.Nvidia { set gpu = "nvidia.com/vgpu" }' in text
    assert 'device Ascend910B3 extends ascend.Ascend910B3 { set npu = "huawei.com/Ascend910B"' in text
    assert [(each.code, each.severity, each.title) for each in result.diagnostics] == [
        (ConfigCode.OLD_KEY, Severity.WARNING, "`knownMigGeometries` is a key of older versions of HAMi"),
        (ConfigCode.OLD_KEY, Severity.WARNING, "`topologyPairs` is a key of older versions of HAMi"),
    ]
    assert "migProfileAllowlist" in result.diagnostics[0].help[0]


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("iluvatar: {resourceCountName: iluvatar.ai/vgpu}", "write `iluvatars`"),
        ("nvidia: {defaultMem: 5000}", "write `defaultMemory`"),
        ("enflame: {resourceCountName: enflame.com/vgcu}", "write `resourceNameGCU`"),
        ("enflame: {resourcePercentageName: enflame.com/vgcu-percentage}", "write `resourceNameGCUMemory`"),
    ],
)
def test_old_keys_whose_effect_would_be_lost_are_errors(text: str, instead: str) -> None:
    result = import_configuration(Source("old.yaml", text))
    assert result.converted is None
    (found,) = result.diagnostics
    assert (found.code, found.severity) == (ConfigCode.OLD_KEY, Severity.ERROR)
    assert found.help[0].startswith(instead)


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        (
            "nvidia:\n  defaultMemory: 1\n  defaultMemory: 2\n  defaultMemry: 3\nvnpu: {}\n",
            [
                "3: the key `defaultMemory` is there twice",
                "4: HAMi's device configuration has no key `defaultMemry` here",
                "5: HAMi's device configuration has no key `vnpu` here",
            ],
        ),
        (
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
            "parallelism: 1\nparallelism: 2\nparalelism: 3\n",
            ["4: the key `parallelism` is there twice", "5: unknown key `paralelism`"],
        ),
    ],
)
def test_a_repeated_key_is_reported_beside_the_other_mistakes(text: str, titles: list[str]) -> None:
    result = import_configuration(Source("c.yaml", text))
    assert result.converted is None
    found = [each for each in result.diagnostics if each.severity is Severity.ERROR]
    assert [f"{each.span.line}: {each.title}" for each in found if each.span is not None] == titles


def test_values_of_the_chart_are_told_where_the_configuration_is() -> None:
    found = import_configuration(
        Source("values.yaml", "scheduler: {}\ndevicePlugin: {deviceSplitCount: 10}\n")
    )
    (only,) = found.diagnostics
    assert only.title == "`values.yaml` is no scheduler configuration: it has no `kind`"
    assert "values of HAMi's chart" in only.help[0] and "hami-scheduler-device" in only.help[1]
