"""Mappings and tables in a folder, for the tests of mappings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from kdsl.base.errors import InvalidInputError
from kdsl.lab.inputs.mapped import read_mapped
from kdsl.lab.inputs.mapping_file import load_mapping
from kdsl.lab.inputs.reading import Reading

NODE = {"name": '"node"', "cpu": 4, "memory": '"8Gi"'}


def write_mapping(folder: Path, pods: Any, nodes: Any = NODE, **files: str) -> Path:
    """Write a mapping with one table each, and the tables: `pods_csv="..."` is `pods.csv`."""
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text, encoding="utf-8")
    path = folder / "mapping.yaml"
    document = {"apiVersion": "kdsl.dev/v1", "kind": "Mapping", "nodes": [nodes], "pods": [pods]}
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


def read(folder: Path, pods: Any, nodes: Any = NODE, **files: str) -> Reading:
    return read_mapped(load_mapping(write_mapping(folder, pods, nodes, **files)))


def titles(reading: Reading) -> list[str]:
    return [diagnostic.title for diagnostic in reading.diagnostics]


def mistakes(folder: Path, text: str) -> list[tuple[str, str]]:
    """Return the place and the title of each mistake of a mapping."""
    path = folder / "mapping.yaml"
    path.write_text(text, encoding="utf-8")
    try:
        load_mapping(path)
    except InvalidInputError as error:
        return [
            (str(each.span or each.where).removeprefix(f"{path}:"), each.title) for each in error.diagnostics
        ]
    return []


def requests(reading: Reading) -> dict[str, Mapping[str, int]]:
    return {arrival.pod.name: arrival.pod.requests.amounts() for arrival in reading.workload.arrivals}
