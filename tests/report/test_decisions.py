from __future__ import annotations

import json
from importlib import resources
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from kdsl.cycle.decision import Decision
from kdsl.report.decisions import decision_document

from tests.report.decisions import GATED, PENDING, PLACED


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    text = resources.files("kdsl.report").joinpath("schemas/v1alpha1.schema.json").read_text(encoding="utf-8")
    schema = json.loads(text)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator({"$ref": "#/$defs/decision", "$defs": schema["$defs"]})


@pytest.mark.parametrize("decision", [PLACED, PENDING, GATED], ids=lambda decision: decision.pod)
def test_documents_fit_the_published_schema(decision: Decision, validator: Draft202012Validator) -> None:
    document = json.loads(json.dumps(decision_document(decision)))
    assert [error.message for error in validator.iter_errors(document)] == []


@pytest.mark.parametrize(
    "change", [{"outcome": "lost"}, {"nodes": -1}, {"pod": "no-namespace"}, {"seconds": 1.5}], ids=str
)
def test_the_schema_refuses(change: dict[str, Any], validator: Draft202012Validator) -> None:
    document: Any = json.loads(json.dumps(decision_document(PLACED)))
    document.update(change)
    assert not validator.is_valid(document)


def test_a_summary_decision_has_no_verdicts() -> None:
    assert "verdicts" not in decision_document(GATED)


def test_scores_carry_raw_normalized_and_weighted() -> None:
    document: Any = decision_document(PLACED)
    cell = {"plugin": "TaintToleration", "raw": 0, "normalized": 100, "weight": 3, "weighted": 300}
    assert document["verdicts"][0]["scores"][0] == cell
