"""Which test shows which scenario and which fault of the conformance list for live schedulers.

Scenarios are numbered as in its section 12, faults in the order of its section 11. Those of virtual time are in
`tests/live`; those of this folder show what only the whole process shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_HERE: Final = "tests.live.scenarios."
_LIVE: Final = "tests.live."
_EXTENDER: Final = "an extender and a webhook for other schedulers are not built"


def _tests(module: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{module}::{name}" for name in names)


def _loop(*names: str) -> tuple[str, ...]:
    return _tests(f"{_LIVE}test_loop", *names)


ELSEWHERE: Final[Mapping[int, tuple[str, ...]]] = MappingProxyType(
    {
        10: _loop("test_a_binding_that_fails_is_tried_again_after_one_two_and_four_seconds"),
        11: _tests(f"{_LIVE}test_client", "test_retry_after_is_waited_for_by_all_verbs"),
        12: _loop("test_12_a_binding_whose_answer_is_lost_was_done_and_nothing_else_is_said"),
        15: _loop("test_15_a_pod_is_not_bound_to_a_node_that_went_meanwhile"),
        18: _loop("test_18_the_room_of_a_deleted_preemptor_is_there_for_others"),
        25: _tests(f"{_LIVE}test_watches", "test_silence_about_nodes_is_found_out_within_a_minute"),
        29: _loop("test_29_a_lease_that_is_lost_between_decision_and_request_begins_no_binding"),
        33: _tests(f"{_LIVE}test_recorder", "test_a_note_is_cut_between_characters"),
        41: _tests(f"{_LIVE}test_devices", "test_41_what_cards_have_left_is_the_same_after_a_restart"),
    }
)
"""Scenarios that tests of other folders show, alone or beside those here."""

NOT_BUILT: Final[Mapping[int, str]] = MappingProxyType(dict.fromkeys(range(36, 41), _EXTENDER))
"""Scenarios without a test, and why."""

_FAILING, _LEADERS = f"{_HERE}test_failing_binds", f"{_HERE}test_leaders"
_AWAY, _RIGHTS = f"{_HERE}test_server_away", f"{_HERE}test_rights"

FAULTS: Final[Mapping[int, tuple[str, tuple[str, ...]]]] = MappingProxyType(
    {
        1: (
            "API server restarts",
            _tests(_AWAY, "test_s12_23_pods_that_came_while_the_server_was_away_are_bound_once"),
        ),
        2: (
            "API server away for long",
            _tests(
                _AWAY,
                "test_s12_30_a_server_that_is_away_for_long_ends_no_process_and_nothing_is_bound_meanwhile",
                "test_a_scheduler_ends_soon_though_the_server_is_away",
                "test_a_scheduler_that_starts_while_the_server_is_away_waits_and_says_for_what",
            ),
        ),
        3: (
            "partial outage",
            _tests(_AWAY, "test_fault_3_a_resource_that_cannot_be_read_is_named_and_the_others_go_on"),
        ),
        4: (
            "a watch drops, or goes silent",
            _tests(f"{_LIVE}test_reflector", "test_silence_is_noticed_by_the_missing_bookmarks")
            + _tests(_AWAY, "test_s12_25_refused_lists_and_broken_streams_are_got_over"),
        ),
        5: (
            "410, compaction",
            _tests(_AWAY, "test_s12_24_lists_after_a_compaction_change_nothing_and_wake_nobody"),
        ),
        6: (
            "slow writes",
            _tests(_FAILING, "test_fault_6_slow_writes_of_conditions_do_not_keep_bindings_waiting"),
        ),
        7: (
            "429",
            _tests(_FAILING, "test_fault_7_a_server_that_is_overloaded_is_left_alone_and_all_pods_are_bound"),
        ),
        8: (
            "401, and 403 for a moment",
            _tests(
                _RIGHTS,
                "test_fault_8_a_server_that_knows_no_rights_for_a_moment_is_waited_for",
                "test_s12_31_a_rotated_token_is_read_when_the_old_one_is_refused",
            ),
        ),
        9: (
            "409 at a binding: bound by someone",
            _loop("test_a_pod_that_somebody_else_binds_at_the_same_time_gets_no_false_condition"),
        ),
        10: (
            "404 at a binding",
            _tests(_FAILING, "test_s12_13_a_pod_deleted_during_a_slow_binding_leaves_its_room_at_once"),
        ),
        11: (
            "the answer to a binding is lost",
            _tests(_FAILING, "test_s12_12_a_binding_whose_answer_is_lost_leaves_no_false_condition"),
        ),
        12: (
            "a pod is deleted while it is bound",
            _tests(_FAILING, "test_s12_13_a_pod_deleted_during_a_slow_binding_leaves_its_room_at_once"),
        ),
        13: (
            "a pod is made anew",
            _tests(_FAILING, "test_s12_14_a_pod_made_anew_during_a_slow_binding_is_decided_by_itself"),
        ),
        14: (
            "a node is deleted with assumed pods",
            _loop("test_15_a_pod_is_not_bound_to_a_node_that_went_meanwhile"),
        ),
        15: (
            "a node flaps",
            _tests(f"{_HERE}test_nodes", "test_fault_15_a_node_that_flaps_causes_bounded_work"),
        ),
        16: (
            "two schedulers without a lease",
            _tests(_LEADERS, "test_fault_16_two_schedulers_without_a_lease_do_no_harm_to_a_pod"),
        ),
        17: (
            "a lease is lost during a binding",
            _loop("test_29_a_lease_that_is_lost_between_decision_and_request_begins_no_binding"),
        ),
        18: ("the wall clock jumps", _tests(f"{_LIVE}test_ports", "test_a_steady_clock_does_not_jump")),
        19: (
            "a condition cannot be written",
            _tests(
                f"{_LIVE}test_status_writer",
                "test_what_fails_four_times_is_given_up_and_tried_again_at_the_next_attempt",
            ),
        ),
        20: (
            "annotations that are too large",
            _tests(f"{_LIVE}test_annotations", "test_annotations_that_do_not_fit_are_not_sent"),
        ),
        21: (
            "a long name of a node",
            _tests(f"{_HERE}test_placing", "test_fault_21_a_node_with_a_long_name_gets_pods_and_no_label"),
        ),
        24: (
            "thousands of pods that wait",
            _tests(f"{_HERE}test_load", "test_s12_32_fitting_pods_do_not_wait_behind_those_that_fit_nowhere"),
        ),
        25: (
            "a right or an API is missing",
            _tests(
                _RIGHTS,
                "test_fault_25_an_api_that_the_server_does_not_have_stops_nobody",
                "test_s12_34_a_resource_without_rights_is_named_by_readyz",
            ),
        ),
        26: (
            "SIGTERM under load",
            _tests(_LEADERS, "test_fault_26_bindings_under_way_are_ended_before_the_lease_is_given_back"),
        ),
    }
)
"""Faults, what each is, and the tests that show it."""

FAULTS_ELSEWHERE: Final[Mapping[int, str]] = MappingProxyType(
    {
        22: "a webhook that is down: none is built",
        23: "an extender that is slow or down: extenders are called by a plugin, see tests/plugins/test_extender.py",
    }
)
"""Faults without a test here, and why."""
