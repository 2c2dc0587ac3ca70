"""HAMi's device configuration as data: maps its keys to parameters of shipped devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Target:
    """A parameter of a shipped device, `package.Device`. The value of the key has type `type`.

    A key of an older version `is_fallback`: another key of the parameter wins.
    """

    device: str
    param: str
    type: type = str
    is_fallback: bool = False

    @property
    def name(self) -> str:
        """Return the name of the device without its package."""
        return self.device.rpartition(".")[2]


Keys = Mapping[str, Target]


@dataclass(frozen=True, slots=True)
class ChipFamily:
    """A list of chips: `known` devices by their common word, the device that others extend, and its word."""

    known: Mapping[str, str]
    base: str
    word: str
    keys: Mapping[str, tuple[str, type]] = field(default_factory=dict)
    without: frozenset[str] = frozenset()


_NVIDIA: Final = "nvidia.Nvidia"
SECTIONS: Final[Mapping[str, Keys]] = {
    "nvidia": {
        "resourceCountName": Target(_NVIDIA, "gpu"),
        "resourceMemoryName": Target(_NVIDIA, "gpumem"),
        "resourceMemoryPercentageName": Target(_NVIDIA, "gpumemPercentage"),
        "resourceCoreName": Target(_NVIDIA, "gpucores"),
        "resourcePriorityName": Target(_NVIDIA, "gpuPriority"),
        "overwriteEnv": Target(_NVIDIA, "overwriteEnv", bool),
        "defaultMemory": Target(_NVIDIA, "defaultMemory", int),
        "defaultCores": Target(_NVIDIA, "defaultCores", int),
        "defaultGPUNum": Target(_NVIDIA, "defaultCount", int),
        "memoryFactor": Target(_NVIDIA, "memoryFactor", int),
        "gpuCorePolicy": Target(_NVIDIA, "corePolicy"),
        "runtimeClassName": Target(_NVIDIA, "runtimeClassName"),
    },
    "cambricon": {
        "resourceCountName": Target("cambricon.Mlu", "vmlu"),
        "resourceMemoryName": Target("cambricon.Mlu", "vmemory"),
        "resourceCoreName": Target("cambricon.Mlu", "vcore"),
    },
    "hygon": {
        "resourceCountName": Target("hygon.Dcu", "dcunum"),
        "resourceMemoryName": Target("hygon.Dcu", "dcumem"),
        "resourceCoreName": Target("hygon.Dcu", "dcucores"),
        "memoryFactor": Target("hygon.Dcu", "memoryFactor", int),
    },
    "metax": {
        "resourceCountName": Target("metax.MetaxGpu", "gpu"),
        "resourceVCountName": Target("metax_sgpu.MetaxSgpu", "sgpu"),
        "resourceVMemoryName": Target("metax_sgpu.MetaxSgpu", "vmemory"),
        "resourceVCoreName": Target("metax_sgpu.MetaxSgpu", "vcore"),
        "sgpuTopologyAware": Target("metax_sgpu.MetaxSgpu", "topologyAware", bool),
    },
    "enflame": {
        "resourceNameGCU": Target("enflame.Gcu", "gcu"),
        "resourceNameDRSGCU": Target("enflame.Drs", "drsGcu"),
        "resourceNameVGCU": Target("enflame.Drs", "drsGcu", is_fallback=True),
        "resourceNameGCUMemory": Target("enflame.Drs", "gcuMemory"),
        "resourceNameGCUCore": Target("enflame.Drs", "gcuCore"),
    },
    "mthreads": {
        "resourceCountName": Target("mthreads.Mthreads", "vgpu"),
        "resourceMemoryName": Target("mthreads.Mthreads", "sgpuMemory"),
        "resourceCoreName": Target("mthreads.Mthreads", "sgpuCore"),
    },
    "kunlun": {
        "resourceCountName": Target("kunlun.Kunlun", "xpu"),
        "resourceVCountName": Target("kunlun.KunlunPart", "vxpu"),
        "resourceVMemoryName": Target("kunlun.KunlunPart", "vxpuMemory"),
    },
    "awsneuron": {
        "resourceCountName": Target("awsneuron.AwsNeuron", "neuron"),
        "resourceCoreName": Target("awsneuron.AwsNeuron", "neuroncore"),
    },
    "amd": {
        "resourceCountName": Target("amd.Amd", "gpu"),
        "resourceMemoryName": Target("amd.Amd", "gpumem"),
        "resourceCoreName": Target("amd.Amd", "gpucores"),
    },
    "vastai": {"resourceCountName": Target("vastai.Vastai", "va")},
    "biren": {"resourceCountName": Target("biren.Biren", "gpu")},
}

OF_NODES: Final[Mapping[str, frozenset[str]]] = {
    "nvidia": frozenset(
        {
            "preConfiguredDeviceMemory", "deviceSplitCount", "deviceMemoryScaling", "deviceCoreScaling",
            "enableNumaTopology", "libCudaLogLevel", "disableCoreLimit", "migProfileAllowlist",
        }
    ),
}  # fmt: skip
"""Keys for device plugins: their effects are in the data that nodes register."""


@dataclass(frozen=True, slots=True)
class OldKey:
    """A key of older versions, why it has no effect today and the setting to use instead.

    If the setting is needed to keep the effect, it `is_lost`; otherwise another component has it today.
    """

    why: str
    instead: str
    is_lost: bool = False


_MIG_MODE: Final = OldKey(
    "not used: the mode of a node is its device plugin's", "set it in the device plugin's node configuration"
)
_GCU_PARTS: Final = OldKey(
    "not read", "write `resourceNameGCUMemory` and `resourceNameGCUCore`", is_lost=True
)
OLD_KEYS: Final[Mapping[tuple[str, str], OldKey]] = {
    ("nvidia", "knownMigGeometries"): OldKey(
        "not used since 2.10: nodes register the MIG profiles of their cards",
        "run the device plugin of 2.10; its `migProfileAllowlist` says which profiles it offers",
    ),
    ("nvidia", "defaultMem"): OldKey("not read", "write `defaultMemory`", is_lost=True),
    ("nvidia", "migStrategy"): _MIG_MODE,
    ("nvidia", "migstrategy"): _MIG_MODE,
    ("vnpus", "topologyPairs"): OldKey("not used: nodes register the network of each card", "leave it out"),
    ("enflame", "resourceCountName"): OldKey(
        "not read", "write `resourceNameGCU`, or `resourceNameDRSGCU` for parts of a card", is_lost=True
    ),
    ("enflame", "resourcePercentageName"): _GCU_PARTS,
    ("enflame", "resourceNameVGCUPercentage"): _GCU_PARTS,
    ("", "iluvatar"): OldKey(
        "not read", "write `iluvatars`: a list with the `commonWord` and resources of each chip", is_lost=True
    ),
}
"""Keys of older versions, by section ("" for the sections themselves)."""

ILUVATAR: Final = ChipFamily(
    known={
        "MR-V100": "iluvatar.MrV100",
        "MR-V50": "iluvatar.MrV50",
        "BI-V150": "iluvatar.BiV150",
        "BI-V100": "iluvatar.BiV100",
    },
    base="iluvatar.MrV100",
    word="chip",
    keys={
        "resourceCountName": ("vgpu", str),
        "resourceMemoryName": ("vmem", str),
        "resourceCoreName": ("vcore", str),
    },
    without=frozenset({"chipName"}),
)
ASCEND: Final = ChipFamily(
    known={
        "Ascend910A": "ascend.Ascend910A",
        "Ascend910B2": "ascend.Ascend910B2",
        "Ascend910B3": "ascend.Ascend910B3",
        "Ascend910B4": "ascend.Ascend910B4",
        "Ascend910B4-1": "ascend.Ascend910B4With64",
        "Ascend910C": "ascend.Ascend910C",
        "Ascend310P": "ascend.Ascend310P",
    },
    base="ascend.Ascend910A",
    word="word",
    keys={
        "resourceName": ("npu", str),
        "resourceMemoryName": ("npuMemory", str),
        "resourceCoreName": ("npuCore", str),
        "memoryAllocatable": ("allocatable", int),
        "memoryCapacity": ("capacity", int),
        "memoryFactor": ("memoryFactor", int),
        "runtimeClassName": ("runtimeClassName", str),
        "overwriteEnv": ("overwriteEnv", bool),
        "superPod": ("isModular", bool),
    },
    without=frozenset({"chipName", "aiCore", "aiCPU"}),
)
