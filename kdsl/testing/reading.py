"""Test files to cases: strict, with all errors reported at once.

An unknown name, a key that is not read and a case that cannot fail are errors: a test that passes for the
wrong reason is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from kdsl.app import DEFAULT_PLUGINS, shipped_rules
from kdsl.base.diagnostic import Diagnostic, Label, did_you_mean, has_errors
from kdsl.base.file_policy import FoundFile, RefusedError, follow
from kdsl.base.real_path import real_path
from kdsl.base.span import Span
from kdsl.check.model.rule_set import CheckedProfile
from kdsl.check.model.sharing import DEVICES
from kdsl.lang.codes import LangCode
from kdsl.lang.discovery import find_rule_files
from kdsl.lang.program import Program
from kdsl.testing.cases import Arrival, Case, PodCase, PropertyCase, QueueCase, RuleTest
from kdsl.testing.codes import TestCode
from kdsl.testing.document import PlacedValue, read_document
from kdsl.testing.fixture_reading import check_fixture, read_fixtures
from kdsl.testing.fixtures import FixtureKind, Fixtures
from kdsl.testing.laws import read_law
from kdsl.testing.matrix import read_matrix
from kdsl.testing.shape import check_shape, fitting
from kdsl.testing.subject import Checked, Library, Subject, SubjectKind, check_subject, find_subject

_ARRIVAL: Final = re.compile(r"([^@\s]+)(?:@t=(\d+))?(?:\s+priority\s+(-?\d+))?")
_COPY: Final = re.compile(r"-\d+$")
_GENERATED_PODS: Final = 100
_GENERATED_NODES: Final = 20


def read_test(
    file: FoundFile, library: Library, found: list[Diagnostic], rules: Sequence[Path] = ()
) -> RuleTest | None:
    """Read one test file; `rules` replace its own paths of rule files.

    Errors in it and in the rules are added to `found`; then there is no test.
    """
    before, path = len(found), file.path
    root = read_document(file, found)
    if root is None:
        return None
    found.extend(check_shape(root))
    whole, root = root, fitting(root)
    if root is None:
        return None
    fixtures = read_fixtures(root.get("fixtures"), path.parent, found)
    for kind in FixtureKind:
        lost = set(_keys(whole, kind)) - set(_keys(root, kind))
        # Only their names are known: using them is no mistake.
        fixtures.broken.update(lost)
    paths = tuple(rules or _rule_paths(root, path.parent, found))
    loaded = library.load(paths) if paths else None
    is_loaded = loaded is not None and not has_errors(loaded.diagnostics)
    # The library reports errors in rules, once for all files that test these rules.
    subject = _subject(root, loaded.program, found) if loaded is not None and is_loaded else None
    checked = None
    if loaded is not None and subject is not None:
        checked = check_subject(loaded, subject, library.plugins)
        if checked.rules is None:
            found.extend(_about_subject(checked, root.keys["params" if subject.params else subject.kind]))
    # Errors in cases that do not depend on the rules are always reported.
    is_known = checked is not None and checked.rules is not None
    reader = _CaseReader(fixtures, checked if is_known else None, found)
    tests = root.get("tests")
    cases = tuple(case for place in (tests.each() if tests else ()) for case in reader.read(place))
    if checked is None or subject is None or loaded is None or not is_known or has_errors(found[before:]):
        return None
    return RuleTest(path, subject, paths, loaded, checked, cases)


def _keys(root: PlacedValue, kind: FixtureKind) -> Iterable[str]:
    written = root.get("fixtures", kind)
    return written.keys if written is not None else ()


def _rule_paths(root: PlacedValue, folder: Path, found: list[Diagnostic]) -> Sequence[Path]:
    """Return the rule files under test: those that the file names, those beside it, or the shipped ones.

    None where a named one does not exist.
    """
    written = root.get("rules")
    if written is not None:
        paths = [_rule_path(each, folder, found) for each in written.each()]
        return [] if None in paths else [path for path in paths if path is not None]
    beside, problems = find_rule_files([folder])
    # Rules that cannot be read are reported: no others are tested in their place.
    is_empty = not beside and all(each.code == LangCode.NO_RULES for each in problems)
    return [shipped_rules()] if is_empty else [folder]


def _rule_path(place: PlacedValue, folder: Path, found: list[Diagnostic]) -> Path | None:
    """Return a path of rule files that a test names; None where it does not exist, or a link is refused."""
    try:
        path = follow(folder, place.text)
        path.stat()
    except RefusedError as error:
        title = f"cannot read `{place.text}`: {error.refusal}"
    except (OSError, ValueError):
        title = f"there is no file or folder `{place.text}`"
    else:
        return _near(path)
    help_ = ("paths begin in the folder of the test",)
    found.append(Diagnostic(TestCode.UNREADABLE, title, place.span, help=help_))
    return None


def _near(path: Path) -> Path:
    """Return a normalized path, relative where it is below the current folder, as in verdicts."""
    whole, here = real_path(path), Path.cwd()
    return whole.relative_to(here) if whole.is_relative_to(here) else whole


def _subject(root: PlacedValue, program: Program, found: list[Diagnostic]) -> Subject | None:
    kinds = [kind for kind in SubjectKind if kind in root.keys]
    if len(kinds) != 1:
        # The wrong shape is reported already.
        return None
    (kind,) = kinds
    place = root.children[kind]
    subject = find_subject(program, kind, place.text, place.span)
    if isinstance(subject, Diagnostic):
        found.append(subject)
        return None
    params = root.get("params")
    if params is None:
        return subject
    if kind is SubjectKind.PROFILE:
        title = "`params` are for a rule that is tested alone"
        help_ = ("a profile has its own: `set Rule.param = …`",)
        found.append(
            Diagnostic(TestCode.WRONG_VALUE, title, root.keys["params"], "not with a profile", help=help_)
        )
    assert isinstance(params.value, dict)
    return replace(subject, params=params.value)


def _about_subject(checked: Checked, span: Span) -> Iterable[Diagnostic]:
    """Return the errors of a check; those in the profile that was generated around a rule have no file."""
    for diagnostic in checked.diagnostics:
        is_ours = diagnostic.span is not None and diagnostic.span.source.path.startswith("<")
        yield (
            replace(diagnostic, span=span, label="for a rule that is tested alone", secondary=())
            if is_ours
            else diagnostic
        )


@dataclass(slots=True)
class _CaseReader:
    """Reads the cases of one file, against its fixtures and the profile under test, where that is known."""

    fixtures: Fixtures
    checked: Checked | None
    found: list[Diagnostic]
    names: dict[str, Span] = field(default_factory=dict)

    @property
    def profile(self) -> CheckedProfile | None:
        return self.checked.find() if self.checked is not None else None

    def read(self, place: PlacedValue) -> list[Case]:
        """Read one entry of `tests`; with a matrix it is several cases, and none where it is invalid."""
        before = len(self.found)
        self._name(place.children["property" if "property" in place.keys else "name"])
        if "property" in place.keys:
            return self._property(place)
        nodes = self._nodes(place.get("nodes"))
        is_queue = "queue" in place.keys
        case: PodCase | QueueCase
        case = self._queue_case(place, nodes) if is_queue else self._pod_case(place, nodes)
        matrix = place.get("matrix")
        if matrix is None:
            return [] if has_errors(self.found[before:]) else [case]
        return [
            replace(case, name=f"{case.name} [{label}]", fixtures=fixtures)
            for label, fixtures in read_matrix(matrix, self.fixtures, self.found)
            if not has_errors(self.found[before:])
        ]

    def _name(self, place: PlacedValue) -> None:
        name = place.text
        if name in self.names:
            self.found.append(
                Diagnostic(
                    TestCode.DUPLICATE_NAME,
                    f"two cases are called `{name}`",
                    place.span,
                    "the second one",
                    secondary=(Label(self.names[name], "the first one is here"),),
                )
            )
        self.names.setdefault(name, place.span)

    def _nodes(self, place: PlacedValue | None) -> tuple[str, ...]:
        if place is None:
            return tuple(self.fixtures.of[FixtureKind.NODES])
        names = (self.fixtures.find(FixtureKind.NODES, each, self.found) for each in place.each())
        return tuple(name for name in names if name is not None)

    def _pod_case(self, place: PlacedValue, nodes: tuple[str, ...]) -> PodCase:
        pod, expect = place.children["pod"], place.children["expect"]
        self._pending_pod(pod)
        self._expected_nodes(expect.get("feasible"), nodes)
        self._expected_cards(expect.get("cards"), pod.text)
        for node, rejected in _entries(expect.get("rejected")):
            self._expected_node(node, nodes)
            self._expected_cards(rejected.get("cards"))
            by = rejected.get("by")
            if by is not None:
                for each in (by,) if isinstance(by.value, str) else by.each():
                    self._known_rule(each.text, each.span, "predicate")
        for node, expected in _entries(expect.get("scores")):
            self._expected_node(node, nodes)
            for rule, span in expected.keys.items():
                self._known_rule(rule, span, "score")
        recorded, held = expect.get("recorded"), self.fixtures.recorded
        is_there = pod.text in self.fixtures.of[FixtureKind.PODS]
        if recorded is not None and is_there and (held is None or held.pod != pod.text):
            title = f"no recorded decision is about `{pod.text}`"
            help_ = ("`from: [trace.jsonl#cycle=0]` under `fixtures` holds one",)
            self.found.append(
                Diagnostic(TestCode.WRONG_VALUE, title, recorded.span, "nothing to compare", help=help_)
            )
        picks = expect.get("picks")
        if picks is not None:
            self._expected_node(picks, nodes)
        self._expected_room(expect, nodes)
        return PodCase(
            name=place.children["name"].text,
            span=place.children["name"].span,
            fixtures=self.fixtures,
            nodes=nodes,
            pod=pod.text,
            expect=expect,
        )

    def _queue_case(self, place: PlacedValue, nodes: tuple[str, ...]) -> QueueCase:
        arrivals = tuple(self._arrivals(place.children["queue"]))
        queued = [arrival.pod for arrival in arrivals]
        expect = place.children["expect"]
        for key in ("order", "pending"):
            for each in (expect.get(key) or PlacedValue(None, expect.span)).each():
                self._expected_pod(each, queued)
        for key in ("gated", "cards", "messages"):
            for pod, _ in _entries(expect.get(key)):
                self._expected_pod(pod, queued)
        for pod, cards in _entries(expect.get("cards")):
            self._expected_cards(cards, pod.text)
        for pod, node in _entries(expect.get("placed")):
            self._expected_pod(pod, queued)
            self._expected_node(node, nodes)
        return QueueCase(
            name=place.children["name"].text,
            span=place.children["name"].span,
            fixtures=self.fixtures,
            nodes=nodes,
            arrivals=arrivals,
            expect=expect,
        )

    def _arrivals(self, place: PlacedValue) -> Iterable[Arrival]:
        seen: set[str] = set()
        for each in place.each():
            match = _ARRIVAL.fullmatch(each.text)
            # INVARIANT: the schema has the same pattern.
            assert match is not None
            name, second, priority = match.groups()
            if name in seen:
                title = f"pod `{name}` is queued twice"
                self.found.append(Diagnostic(TestCode.DUPLICATE_NAME, title, each.span, "the second time"))
            seen.add(name)
            self._pending_pod(PlacedValue(name, each.span))
            yield Arrival(name, int(second or 0), None if priority is None else int(priority))

    def _property(self, place: PlacedValue) -> list[Case]:
        law = read_law(place.children["holds"], self.checked, self.found)
        pods, nodes = place.get("forall", "pods"), place.get("forall", "nodes")
        reason = place.get("unproven")
        if law is None:
            return []
        case = PropertyCase(
            name=place.children["property"].text,
            span=place.children["property"].span,
            fixtures=self.fixtures,
            nodes=(),
            law=law,
            pods=int(pods.text) if pods else _GENERATED_PODS,
            cluster_size=int(nodes.text) if nodes else _GENERATED_NODES,
            unproven=reason.text if reason else "",
        )
        return [case]

    def _pending_pod(self, place: PlacedValue) -> None:
        name = self.fixtures.find(FixtureKind.PODS, place, self.found)
        on = self.fixtures.of[FixtureKind.PODS][name].on if name is not None else ""
        if on:
            title = f"pod `{name}` already runs on `{on}`"
            help_ = ("a pod without `on` can be scheduled",)
            self.found.append(Diagnostic(TestCode.WRONG_VALUE, title, place.span, "not pending", help=help_))

    def _expected_nodes(self, place: PlacedValue | None, nodes: Sequence[str]) -> None:
        for each in place.each() if place is not None else ():
            self._expected_node(each, nodes)

    def _expected_node(self, place: PlacedValue, nodes: Sequence[str]) -> None:
        self._in_case("node", place, nodes)

    def _expected_pod(self, place: PlacedValue, pods: Sequence[str]) -> None:
        self._in_case("pod", place, pods)

    def _expected_room(self, expect: PlacedValue, nodes: Sequence[str]) -> None:
        """Report rooms where nothing makes any, unknown nodes, and victims that do not run in the case."""
        nominated, victims = expect.get("nominated"), expect.get("victims")
        for place in (nominated, victims) if self._never_makes_room() else ():
            if place is not None:
                title = "the subject of the test has no preemption, so no pod makes room"
                help_ = ("`profile: NAME` tests a profile, where `preemption NAME` gives it one",)
                self.found.append(
                    Diagnostic(TestCode.WRONG_VALUE, title, place.span, "without preemption", help=help_)
                )
        if nominated is not None and nominated.value:
            self._expected_node(nominated, nodes)
        running = list(self.fixtures.running(nodes))
        known = [name for each in running for name in each.copies]
        for victim in victims.each() if victims is not None else ():
            if _COPY.sub("", victim.text) not in self.fixtures.broken:
                self._in_case("pod", victim, known, [each.named for each in running])

    def _never_makes_room(self) -> bool:
        """Return whether the profile under test has no preemption, and no plugin may be one."""
        checked, profile = self.checked, self.profile
        if checked is None or profile is None or profile.preemption is not None:
            return False
        return checked.plugins.args.keys() <= DEFAULT_PLUGINS.keys()

    def _expected_cards(self, place: PlacedValue | None, pod: str = "") -> None:
        """Report cards where there are no devices, and cards of containers that `pod` does not have."""
        if place is None:
            return
        if self.profile is not None and self.profile.sharing is None:
            title = "the subject of the test shares no devices, so no pod gets cards"
            help_ = ("`device: NAME` tests a device, `profile: NAME` a profile with some",)
            self.found.append(Diagnostic(TestCode.WRONG_VALUE, title, place.span, "of no device", help=help_))
            return
        fixture = self.fixtures.of[FixtureKind.PODS].get(pod)
        # The errors of a fixture are reported already.
        if fixture is not None and check_fixture(self.fixtures, fixture, []):
            known = [each.name for each in self.fixtures.pod(pod).device_containers]
            for container, _ in _entries(place):
                self._in_case("container", container, known)

    def _in_case(
        self, noun: str, place: PlacedValue, known: Sequence[str], listed: Sequence[str] | None = None
    ) -> None:
        """Report a name that is not `known`; the message has the known names, in the form `listed`."""
        if place.text in known or place.text in self.fixtures.broken or not self.fixtures.whole:
            return
        listed = known if listed is None else listed
        help_ = did_you_mean(place.text, known) or (f"{noun}s here: {', '.join(listed) or 'none'}",)
        title = f"there is no {noun} `{place.text}` in this case"
        self.found.append(Diagnostic(TestCode.UNKNOWN_FIXTURE, title, place.span, "unknown", help=help_))

    def _known_rule(self, name: str, span: Span, noun: str) -> None:
        profile = self.profile
        if profile is None:
            return
        scores = [entry.score.name for entry in profile.scores]
        rules = scores if noun == "score" else [rule.name for rule in profile.predicates]
        known = [*rules, DEVICES] if profile.sharing is not None else rules
        if name in known:
            return
        help_ = did_you_mean(name, known) or (f"{noun}s here: {', '.join(known) or 'none'}",)
        title = f"there is no {noun} `{name}` in the rules under test"
        self.found.append(Diagnostic(TestCode.UNKNOWN_RULE, title, span, "unknown", help=help_))


def _entries(place: PlacedValue | None) -> list[tuple[PlacedValue, PlacedValue]]:
    """Return the keys, as separate places, and the values of a mapping that may be missing."""
    if place is None:
        return []
    return [(PlacedValue(key, place.keys[key]), value) for key, value in place.items()]
