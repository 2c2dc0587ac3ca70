"""Rules that change under a running scheduler, in files and in mounted ConfigMaps."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from threading import Event, Timer

import pytest
from kdsl.base.clock import ManualClock
from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import InvalidInputError
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.context import PluginContext
from kdsl.lang.discovery import find_rule_files
from kdsl.live.rules.file_watch import FileWatch
from kdsl.live.rules.reloading import Loaded, Reloader, keep_polling
from kdsl.reload import Reloaded, Sources, load_scheduler

from tests.attacks.layouts import soon

RULES = """kdsl 1
package mine
queue First {{ order by pod.queuedAt }}
predicate Wanted {{ require node.name == "{node}" else "not the wanted node" }}
profile mine {{ scheduler "default-scheduler" queue First predicates {{ Wanted }} }}
"""


class Mount:
    """A folder as the kubelet makes it for a ConfigMap: links into `..data`, which is swapped at once."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.version = folder, 0
        folder.mkdir()

    def update(self, files: dict[str, str]) -> None:
        self.version += 1
        data = self.folder / f"..2026_11_23_{self.version}"
        data.mkdir()
        for name, text in files.items():
            (data / name).write_text(text)
        (self.folder / "..data_tmp").symlink_to(data.name)
        (self.folder / "..data_tmp").replace(self.folder / "..data")
        for name in files:
            link = self.folder / name
            if not link.is_symlink():
                link.symlink_to(f"..data/{name}")


class Listener:
    def __init__(self) -> None:
        self.applied_sets: list[str] = []
        self.refusals: list[tuple[Diagnostic, ...]] = []

    def applied(self, loaded: str, diagnostics: tuple[Diagnostic, ...]) -> None:
        self.applied_sets.append(loaded)

    def refused(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        self.refusals.append(diagnostics)


class Binder:
    def bind(self, pod: object, node: str) -> None:
        raise AssertionError("nothing is bound here")


def load(configuration: Path) -> Loaded[str]:
    context = PluginContext(Binder(), ManualClock(), WaitingPods())
    loaded: Reloaded = load_scheduler(configuration, context)
    return Loaded(loaded.scheduler.options.rules, loaded.diagnostics)


@pytest.fixture
def mounts(tmp_path: Path) -> tuple[Mount, Mount, Path]:
    rules, config = Mount(tmp_path / "rules"), Mount(tmp_path / "config")
    rules.update({"a.kdsl": RULES.format(node="n1")})
    config.update(
        {
            "kdsl.yaml": f"apiVersion: kdsl.dev/v1alpha1\nkind: KdslConfiguration\nrules: {{paths: [{rules.folder}]}}\n"
        }
    )
    return rules, config, config.folder / "kdsl.yaml"


def test_the_rules_of_a_mounted_configmap_are_found(mounts: tuple[Mount, Mount, Path]) -> None:
    rules, _, configuration = mounts
    files, problems = find_rule_files([rules.folder])
    assert [file.path.name for file in files] == ["a.kdsl"] and problems == ()
    assert load(configuration).diagnostics == ()


def test_a_swapped_configmap_is_taken_over_whole(mounts: tuple[Mount, Mount, Path]) -> None:
    rules, _, configuration = mounts
    listener = Listener()
    before = load(configuration).made
    reloader = Reloader(FileWatch(Sources(configuration).named), lambda: load(configuration), listener)
    assert not reloader.poll()
    rules.update({"a.kdsl": RULES.format(node="n2")})
    assert not reloader.poll(), "it may be written still"
    assert reloader.poll() and not reloader.poll()
    (after,) = listener.applied_sets
    assert after != before and not listener.refusals


def test_a_slip_keeps_the_last_good_set_until_it_is_gone(mounts: tuple[Mount, Mount, Path]) -> None:
    rules, _, configuration = mounts
    listener = Listener()
    good = load(configuration).made
    reloader = Reloader(FileWatch(Sources(configuration).named), lambda: load(configuration), listener)
    rules.update({"a.kdsl": RULES.format(node="n2").replace("node.name", "node.nmae")})
    reloader.poll()
    assert reloader.poll()
    assert listener.applied_sets == [] and "nmae" in listener.refusals[0][0].title
    rules.update({"a.kdsl": RULES.format(node="n1")})
    reloader.poll()
    assert reloader.poll()
    assert listener.applied_sets == [good]


def test_files_that_change_while_they_are_read_are_read_again(tmp_path: Path) -> None:
    file, listener, loads = tmp_path / "a.kdsl", Listener(), list[str]()
    file.write_text("1")

    def read() -> Loaded[str]:
        loads.append(file.read_text())
        if len(loads) == 1:
            file.write_text("three")
            raise InvalidInputError([Diagnostic("K0001", "half of it")])
        return Loaded(loads[-1])

    reloader = Reloader(FileWatch(lambda: [tmp_path]), read, listener)
    file.write_text("2 ")
    assert [reloader.poll() for _ in range(4)] == [False, False, True, False]
    assert listener.applied_sets == ["three"] and listener.refusals == []


def test_the_fix_of_rules_that_a_refused_configuration_named_is_noticed(
    mounts: tuple[Mount, Mount, Path], tmp_path: Path
) -> None:
    rules, config, configuration = mounts
    listener, other = Listener(), Mount(tmp_path / "other")
    good = load(configuration).made
    reloader = Reloader(FileWatch(Sources(configuration).named), lambda: load(configuration), listener)
    other.update({"a.kdsl": "broken {"})
    config.update({"kdsl.yaml": configuration.read_text().replace(str(rules.folder), str(other.folder))})
    reloader.poll()
    assert reloader.poll() and listener.refusals
    other.update({"a.kdsl": RULES.format(node="n2")})
    reloader.poll()
    assert reloader.poll() and not reloader.poll()
    (after,) = listener.applied_sets
    assert after != good


def test_no_error_of_a_poll_ends_the_polling(caplog: pytest.LogCaptureFixture) -> None:
    polls: list[str] = []

    def poll() -> bool:
        polls.append("")
        raise OSError(36, "File name too long")

    async def play() -> None:
        polling = asyncio.create_task(keep_polling(poll, 0.001))
        while len(polls) < 2:
            await asyncio.sleep(0.001)
        polling.cancel()

    asyncio.run(play())
    assert "the last good ones stay" in caplog.text


def test_a_reload_under_way_does_not_keep_the_process_from_ending() -> None:
    began, goes_on = Event(), Event()

    def poll() -> bool:
        began.set()
        return goes_on.wait(20)

    async def play() -> None:
        polling = asyncio.create_task(keep_polling(poll, 0.001))
        while not began.is_set():
            await asyncio.sleep(0.001)
        polling.cancel()

    timer = Timer(10, goes_on.set)
    timer.start()
    asyncio.run(play())
    assert not goes_on.is_set()
    timer.cancel()
    goes_on.set()


def test_a_path_that_cannot_be_looked_at_is_the_loaders_to_report(tmp_path: Path) -> None:
    watch = _watch(tmp_path / ("x" * 300))
    assert not watch.has_changed()


def test_what_is_the_same_is_no_change(tmp_path: Path) -> None:
    file = tmp_path / "a.kdsl"
    file.write_text("1")
    (tmp_path / "b.txt").write_text("1")
    (tmp_path / "loop").symlink_to(tmp_path)
    watch = FileWatch(lambda: [tmp_path])
    os.utime(file, ns=(5, 5))
    (tmp_path / "b.txt").write_text("2")
    assert not watch.has_changed()
    file.unlink()
    assert watch.has_changed() and not watch.has_changed()
    (tmp_path / "c.kdsl").write_text("1")
    assert watch.has_changed()


def test_a_change_that_keeps_size_and_time_is_noticed(tmp_path: Path) -> None:
    """`rsync --inplace --times` writes so."""
    file = tmp_path / "a.kdsl"

    def write(text: str) -> None:
        file.write_text(text)
        os.utime(file, ns=(5, 5))

    write("1")
    watch = FileWatch(lambda: [tmp_path])
    time.sleep(0.05)  # the clock of a file system is coarse
    write("2")
    assert watch.has_changed() and not watch.has_changed()


def test_a_changed_list_of_ignored_files_is_a_change(tmp_path: Path) -> None:
    (tmp_path / "a.kdsl").write_text("1")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "b.kdsl").write_text("1")
    watch = FileWatch(lambda: [tmp_path])
    (tmp_path / ".kdslignore").write_text("old/\n")
    assert watch.has_changed()
    (tmp_path / "old" / "b.kdsl").write_text("two")
    assert not watch.has_changed()
    (tmp_path / ".kdslignore").write_text("!old/\n")
    assert watch.has_changed(), "the pattern is an error"
    (tmp_path / ".kdslignore").write_text("!older/\n")
    assert watch.has_changed(), "so is this one"
    (tmp_path / ".kdslignore").unlink()
    assert watch.has_changed() and not watch.has_changed()


def _watch(folder: Path) -> FileWatch:
    """Make a watch that has to come to an end."""
    return soon(lambda: FileWatch(lambda: [folder]))


def test_a_folder_is_looked_through_once_whatever_leads_there(tmp_path: Path) -> None:
    here = tmp_path
    for _ in range(24):
        (here / "h").mkdir()
        for link in "ab":
            (here / link).symlink_to("h")
        here = here / "h"
    (here / "deep.kdsl").write_text("1")
    watch = _watch(tmp_path)
    assert not watch.has_changed()
    (here / "deep.kdsl").write_text("2!")
    assert watch.has_changed() and not watch.has_changed()


def test_nothing_waits_for_a_pipe_in_a_folder(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.kdsl")
    # Somebody writes to it who never writes: with a reader that waits it would be for ever.
    kept = os.open(tmp_path / "a.kdsl", os.O_RDWR)
    try:
        watch = _watch(tmp_path)
        assert not watch.has_changed()
    finally:
        os.close(kept)


def test_a_link_out_of_the_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "secret").write_text("1")
    watch = _watch(tmp_path / "rules")
    (tmp_path / "rules" / "a.kdsl").symlink_to("../secret")
    assert watch.has_changed(), "whoever loads the files has something to say"
    (tmp_path / "secret").write_text("22")
    assert not watch.has_changed()
