"""The YAML form of rule files: every class of the syntax tree with its keys.

`twin.py` reads and writes by this table and makes the published schema from it. A test checks that it is
complete.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kdsl.lang import device_tree, profile_tree, tree
from kdsl.lang.choices import ErrorAction, Normalization, RejectionCode, RuleKind
from kdsl.lang.rights import RIGHTS
from kdsl.lang.twin_forms import (
    Doc,
    Expression,
    Flag,
    Integer,
    Many,
    NameForm,
    NumberForm,
    OneOf,
    Reason,
    Text,
    TypeForm,
    member_of,
)
from kdsl.lang.twin_records import Either, Field, Group, Part, Record, RecordShape, Sole, Statements, WordOr

EXPRESSION: Final = Expression()
REASON: Final = Reason()
WORD: Final = NameForm()
NAME: Final = NameForm(qualified=True)
TYPE: Final = TypeForm()
TEXT: Final = Text()
INTEGER: Final = Integer()

RULE = Statements("ruleStatement", lambda: _RULE)
SCORE = Statements("scoreStatement", lambda: _SCORE)
QUEUE = Statements("queueStatement", lambda: _QUEUE)
PREEMPTION = Statements("preemptionStatement", lambda: _PREEMPTION)
DEVICE = Statements("deviceStatement", lambda: _DEVICE)
FIELDS = Statements("fieldStatement", lambda: _FIELDS)
ADMIT = Statements("admitStatement", lambda: _ADMIT)
FIT = Statements("fitStatement", lambda: _FIT)
PROFILE = Statements("profileStatement", lambda: _PROFILE)
TEAM = Statements("teamStatement", lambda: _TEAM)
BLOCKS: Final = (RULE, SCORE, QUEUE, PREEMPTION, DEVICE, FIELDS, ADMIT, FIT, PROFILE, TEAM)

_NAMED_VALUE = (Field("name", "name", WORD), Field("value", "value", EXPRESSION))
_VALUE_WHERE = (Field("value", "value", EXPRESSION), Field("where", "where", EXPRESSION, None))
_PARAM_VALUE = (
    Field("type", "type", TYPE, None),
    Field("value", "value", EXPRESSION),
    Field("final", "final", Flag(), default=False),
)
_WEIGHTED = (Field("name", "name", NAME), Field("weight", "weight", NumberForm()))
_ELSE = Group(
    "else", (Field("code", "code", member_of(RejectionCode), None), Field("reason", "reason", REASON))
)
_KEYS = Many(
    Record(
        tree.SortKey, (Field("key", "value", EXPRESSION), Field("descending", "descending", Flag(), False))
    ),
    least=1,
)

_RULE: Mapping[str, RecordShape] = {
    "appliesWhen": Sole(tree.AppliesWhen, "condition", EXPRESSION),
    "let": Record(tree.Let, _NAMED_VALUE),
    "require": Record(tree.Require, (Field("that", "condition", EXPRESSION), _ELSE)),
    "narrow": Record(tree.Narrow, (Field("to", "names", EXPRESSION), _ELSE)),
    "forEach": Record(
        tree.ForEach,
        (
            Field("as", "names", Many(WORD, 1, 2)),
            Field("in", "iterable", EXPRESSION),
            Field("where", "where", EXPRESSION, None),
            Field("do", "body", Many(RULE, block=True)),
        ),
    ),
    "report": Sole(tree.Report, "all", OneOf({"all": True, "first": False})),
    "onError": WordOr(
        tree.OnError,
        "action",
        {"abort": ErrorAction.ABORT, "zero": ErrorAction.ZERO},
        ErrorAction.REJECT,
        Field("reject", "reason", REASON),
    ),
    "param": Record(tree.Param, (Field("name", "name", WORD), *_PARAM_VALUE)),
}
_VALUE = Sole(tree.Value, "value", EXPRESSION)
_SCORE: Mapping[str, RecordShape] = {
    **{key: _RULE[key] for key in ("appliesWhen", "let", "param", "onError")},
    "ignoreWhen": Sole(tree.IgnoreWhen, "condition", EXPRESSION),
    "value": _VALUE,
    "normalize": WordOr(
        tree.Normalize,
        "kind",
        {str(kind): kind for kind in Normalization if kind is not Normalization.BY},
        Normalization.BY,
        Field("by", "by", EXPRESSION),
    ),
}
_QUEUE: Mapping[str, RecordShape] = {
    **{key: _RULE[key] for key in ("let", "param")},
    "admitWhen": Record(
        tree.AdmitWhen,
        (Field("that", "condition", EXPRESSION), Group("else", (Field("reason", "reason", REASON),))),
    ),
    "orderBy": Sole(tree.OrderBy, "keys", _KEYS),
    "backoff": Record(
        tree.Backoff, (Field("initial", "initial", EXPRESSION), Field("maximum", "maximum", EXPRESSION))
    ),
}
_PREEMPTION: Mapping[str, RecordShape] = {
    **{key: _RULE[key] for key in ("let", "param")},
    "eligibleWhen": Record(
        tree.EligibleWhen,
        (Field("that", "condition", EXPRESSION), Group("else", (Field("reason", "reason", REASON),))),
    ),
    "victimWhen": Sole(tree.VictimWhen, "condition", EXPRESSION),
    "orderBy": _QUEUE["orderBy"],
    "candidates": Sole(tree.Candidates, "count", EXPRESSION),
    "chooseBy": Sole(tree.ChooseBy, "keys", _KEYS),
}
_DEVICE: Mapping[str, RecordShape] = {
    **{key: _RULE[key] for key in ("param", "require")},
    "value": _VALUE,
    "orderBy": _QUEUE["orderBy"],
    "kind": Sole(device_tree.DeviceKind, "word", EXPRESSION),
    "record": Sole(device_tree.Record, "key", EXPRESSION),
    "resource": Record(device_tree.Resource, _NAMED_VALUE),
    "set": Record(device_tree.ReplaceParam, _NAMED_VALUE),
    "inventory": Record(
        device_tree.Inventory,
        (
            Field("as", "name", WORD),
            Field("in", "rows", EXPRESSION),
            Field("fields", "body", Many(FIELDS, block=True)),
        ),
    ),
    "admit": Sole(device_tree.Admit, "body", Many(ADMIT, block=True)),
    "request": Sole(device_tree.Request, "body", Many(FIELDS, block=True)),
    "quota": Sole(device_tree.QuotaFields, "body", Many(FIELDS, block=True)),
    "lock": Sole(device_tree.LockFields, "body", Many(FIELDS, block=True)),
    "handshake": Sole(device_tree.HandshakeFields, "body", Many(FIELDS, block=True)),
    "charge": Sole(device_tree.Charge, "body", Many(FIELDS, block=True)),
    "fit": Sole(device_tree.Fit, "body", Many(FIT, block=True)),
    "choose": Record(
        device_tree.Choose,
        (
            Field("name", "name", WORD),
            Field("where", "where", EXPRESSION, None),
            Field("else", "reason", REASON, None),
            Field("fields", "body", Many(FIELDS, block=True), ()),
        ),
    ),
    "annotate": Record(device_tree.Annotate, (Field("key", "key", EXPRESSION), *_VALUE_WHERE)),
}
_FIELDS: Mapping[str, RecordShape] = {
    "let": _RULE["let"],
    "set": Record(device_tree.Assign, _NAMED_VALUE),
}
_ADMIT: Mapping[str, RecordShape] = {
    **{key: _RULE[key] for key in ("appliesWhen", "let", "require")},
    "set": Record(
        device_tree.AdmissionChange,
        (Field("name", "target", WORD), Field("key", "key", EXPRESSION, None), *_VALUE_WHERE),
    ),
}
_FIT: Mapping[str, RecordShape] = {
    **{key: _RULE[key] for key in ("let", "require")},
    "together": Record(
        device_tree.Together, (Field("by", "by", EXPRESSION), Field("else", "reason", REASON))
    ),
}
_PROFILE: Mapping[str, RecordShape] = {
    "scheduler": Sole(profile_tree.SchedulerName, "name", TEXT),
    "check": Sole(profile_tree.CheckPredicates, "all", OneOf({"all": True, "first": False})),
    "sample": Sole(profile_tree.SampleSize, "count", EXPRESSION),
    "predicates": Sole(profile_tree.PredicateList, "names", Many(NAME)),
    "scores": Sole(profile_tree.ScoreList, "scores", Many(Record(profile_tree.WeightedScore, _WEIGHTED))),
    "queue": Sole(profile_tree.UseQueue, "name", NAME),
    "preemption": Sole(profile_tree.UsePreemption, "name", NAME),
    "devices": Sole(profile_tree.UseDevices, "names", Many(NAME, 1)),
    "tighten": Record(
        profile_tree.Tighten, (Field("name", "name", NAME), Field("body", "body", Many(RULE, block=True)))
    ),
    "reweight": Record(profile_tree.Reweight, _WEIGHTED),
    "disable": Record(
        profile_tree.Disable, (Field("kind", "kind", member_of(RuleKind)), Field("name", "name", NAME))
    ),
    "addPredicate": Record(
        profile_tree.AddPredicate,
        (
            Field("name", "name", NAME),
            Either({str(place): place for place in profile_tree.Placing}, "placing", "anchor", NAME),
        ),
    ),
    "addScore": Record(profile_tree.AddScore, _WEIGHTED),
    "set": Record(
        profile_tree.SetParam,
        (Field("rule", "rule", NAME), Field("param", "param", WORD), Field("value", "value", EXPRESSION)),
    ),
}
_TEAM: Mapping[str, RecordShape] = {
    "owns": Sole(profile_tree.Owns, "condition", EXPRESSION),
    "files": Sole(profile_tree.Files, "pattern", TEXT),
    "contact": Sole(profile_tree.Contact, "address", TEXT),
    "priority": Sole(profile_tree.Priority, "value", INTEGER),
    "may": Sole(
        profile_tree.May,
        "grants",
        Many(
            WordOr(
                profile_tree.Grant,
                "right",
                {right: right for right in RIGHTS},
                "reweight",
                Group("reweight", (Field("from", "low", INTEGER), Field("to", "high", INTEGER))),
            ),
            least=1,
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """One kind of document: its class, and the parts of its `metadata` and its `spec`."""

    make: Callable[..., tree.Declaration]
    metadata: tuple[Part, ...]
    spec: tuple[Part, ...]


_NAMED = (Field("name", "name", WORD),)
_DECLARED = (*_NAMED, Field("doc", "doc", Doc(), ()))
_FN_PARAM = Record(tree.FnParam, (Field("name", "name", WORD), Field("type", "type", TYPE)))

KINDS: Mapping[str, DocumentKind] = {
    "Param": DocumentKind(tree.Param, _NAMED, _PARAM_VALUE),
    "Fn": DocumentKind(
        tree.Fn,
        _DECLARED,
        (
            Field("dyn", "dyn", Flag(), default=False),
            Field("params", "params", Many(_FN_PARAM), ()),
            Field("result", "result", TYPE),
            Field("value", "body", EXPRESSION),
        ),
    ),
    "Predicate": DocumentKind(
        tree.Predicate,
        _DECLARED,
        (
            Field("mandatory", "mandatory", Flag(), default=False),
            Field("body", "body", Many(RULE, block=True)),
        ),
    ),
    "Score": DocumentKind(tree.Score, _DECLARED, (Field("body", "body", Many(SCORE, block=True)),)),
    "Queue": DocumentKind(tree.Queue, _DECLARED, (Field("body", "body", Many(QUEUE, block=True)),)),
    "Preemption": DocumentKind(
        tree.Preemption, _DECLARED, (Field("body", "body", Many(PREEMPTION, block=True)),)
    ),
    "Device": DocumentKind(
        tree.Device,
        _DECLARED,
        (Field("extends", "extends", NAME, None), Field("body", "body", Many(DEVICE, block=True))),
    ),
    "Profile": DocumentKind(
        tree.Profile,
        _DECLARED,
        (Field("extends", "extends", NAME, None), Field("body", "body", Many(PROFILE, block=True))),
    ),
    "Team": DocumentKind(tree.Team, _DECLARED, (Field("body", "body", Many(TEAM, block=True)),)),
}
PACKAGE: Final = "Package"
PACKAGE_METADATA: tuple[Part, ...] = (Field("name", "package", NAME, None),)
PACKAGE_SPEC: tuple[Part, ...] = (
    Field(
        "imports",
        "imports",
        Many(Record(tree.Import, (Field("package", "package", NAME), Field("as", "alias", WORD, None)))),
        (),
    ),
)
