"""HAMi's device configuration as rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from kdsl.app import check_text
from kdsl.base.span import Source
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
