"""`kdsl lab report`: what is in the page, the pictures and the CSV files; names that try to be markup."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from kdsl.base.errors import KdslError
from kdsl.lab.report import library, page, rules, tables, theme

from tests.cli.command_line import kdsl
from tests.lab.report.folders import LOADS, digest_of, write_results, write_table, write_timed

HOSTILE = "</script><img src=x onerror=alert(1)>"
KINDS = ["load-allocation", "load-lost_of_all", "load-lost_of_idle", "pareto", "reasons", "seeds-allocation"]


class _Elements(HTMLParser):
    """The elements and attributes of a page, and the text of its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.text: list[str] = []
        self.inside: tuple[str, dict[str, str | None]] = ("", {})
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = (tag, dict(attrs))
        self.elements.append(self.inside)

    def handle_endtag(self, tag: str) -> None:
        self.inside = ("", {})

    def handle_data(self, data: str) -> None:
        tag, attributes = self.inside
        if tag == "script" and "type" not in attributes:
            self.scripts.append(data)
        elif tag == "style":
            self.styles.append(data)
        else:
            self.text.append(data)


@pytest.fixture(scope="module", autouse=True)
def _one_library(request: pytest.FixtureRequest) -> Any:
    """Bundle the library that draws once: that takes two seconds."""
    program = page.drawing_library()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(page, "drawing_library", lambda: program)
        yield


def _report(folder: Path, *options: str) -> str:
    result = kdsl("lab", "report", str(folder), *options)
    assert (result.exit_code, result.stderr) == (0, "")
    return folder.with_name(f"{folder.name}.html").read_text(encoding="utf-8")


def _data(text: str) -> Any:
    found = re.search(r'<script type="application/json" id="page-data">(.*?)</script>', text, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_the_page_has_all_plots_with_their_data(tmp_path: Path) -> None:
    data = _data(_report(write_results(tmp_path / "out")))
    assert set(data["plots"]) == {
        "traces-0",
        *(
            f"{kind}-{trace}"
            for kind in (*KINDS, "seeds-lost_of_all", "seeds-pending", "cards-1")
            for trace in (0, 1)
        ),
    }
    points = data["plots"]["load-allocation-0"]["data"]["points"]
    rows = [dict(zip(points["names"], row, strict=True)) for row in points["rows"]]
    # At 0 and 50 % all allocate equally: the plot begins at 50.
    assert [(row["v"], row["x"], row["mean"]) for row in rows[:3]] == [
        ("FGD", 50, 50.0),
        ("FGD", 100, 95.0),
        ("FGD", 130, 95.0),
    ]
    assert rows[0]["run"] == digest_of("default", "FGD", 43)
    assert (rows[1]["low"], rows[1]["high"]) == (
        pytest.approx(94.379, abs=0.01),
        pytest.approx(95.621, abs=0.01),
    )


def test_the_page_allows_nothing_but_its_own_programs_and_styles(tmp_path: Path) -> None:
    found = _Elements(_report(write_results(tmp_path / "out")))
    (policy,) = (
        attributes["content"]
        for tag, attributes in found.elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None

    def hashed(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    assert policy.split("; ") == [
        "default-src 'none'",
        f"script-src {' '.join(map(hashed, found.scripts))}",
        f"style-src {' '.join(map(hashed, found.styles))}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert len(found.scripts) == 2
    for tag, attributes in found.elements:
        assert tag not in ("link", "iframe", "img", "object", "form"), tag
        assert not any(name.startswith("on") or name in ("src", "style") for name in attributes), attributes
        assert (attributes.get("href") or "#").startswith("#")


def test_names_are_text_wherever_they_stand(tmp_path: Path) -> None:
    folder = write_results(
        tmp_path / "out", (HOSTILE, "b&b"), (HOSTILE, "var(--x)"), (1, 2), pod_name=HOSTILE
    )
    other = write_results(tmp_path / "plain", ("a", "b"), ("p", "q"), (1, 2))
    for path, name in ((folder, HOSTILE), (other, "plain")):
        for file in (path / "rules").iterdir():
            file.write_text(f"profile {name} {{\n}}\n", encoding="utf-8")
    plain = _Elements(_report(other))
    text = _report(folder)
    found = _Elements(text)
    # The elements are those of a page with plain names.
    assert [tag for tag, _ in found.elements] == [tag for tag, _ in plain.elements]
    assert HOSTILE in "".join(found.text)
    assert HOSTILE not in text
    decisions = next(iter(_data(text)["decisions"].values()))
    assert decisions["rows"][0][1] == f"{HOSTILE}-0"


def test_tables_show_means_intervals_and_differences(tmp_path: Path) -> None:
    found = " ".join(_Elements(_report(write_results(tmp_path / "out"))).text)
    assert "FGD is best in allocation: 95.00 %. The next is BestFit with 93.00 %." in found
    assert "93.00  ± 0.62" in found
    assert "−2.00  ± 0.00  worse" in found
    assert "Student’s t distribution" in found


def test_equal_results_give_equal_pages(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "out")
    assert _report(folder) == _report(folder)


def test_a_run_has_its_settings_decisions_and_the_command_that_explains_them(tmp_path: Path) -> None:
    (tmp_path / "out.yaml").write_text("", encoding="utf-8")
    data = _data(_report(write_results(tmp_path / "out")))
    run = data["runs"][digest_of("default", "BestFit", 43)]
    assert (run["trace"], run["policy"], run["values"]) == ("default", "BestFit", [93.0, 6.0, 70.0, 4.0])
    assert ["prepare: load", "1.3"] in run["settings"]
    decisions = data["decisions"][digest_of("default", "BestFit", 43)]
    assert (decisions["total"], decisions["pending"]) == (40, 4)
    place, pod, node, cards, reason = decisions["rows"][9]
    assert (place, pod, node, cards) == (9, "pod-9", None, "")
    assert decisions["names"][reason].startswith("0/4 nodes are available: 2 Insufficient cpu")
    assert data["explain"] == f"kdsl lab explain {tmp_path / 'out.yaml'}"
    (tmp_path / "out.yaml").unlink()
    assert _data(_report(tmp_path / "out"))["explain"] is None


def test_rules_are_shown_and_compared(tmp_path: Path) -> None:
    found = " ".join(_Elements(_report(write_results(tmp_path / "out"))).text)
    assert "Difference from FGD: 1 lines added, 1 removed" in found
    assert "-  weight 0" in found and "+  weight 2" in found
    assert "// here" not in found


def test_long_rules_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MOST_LINES", 2)
    folder = write_results(tmp_path / "out", ("t",), ("P",), (1,))
    (file,) = (folder / "rules").iterdir()
    file.write_text("a" * 300 + "\nb\nc\nd\n", encoding="utf-8")
    found = " ".join(_Elements(_report(folder)).text)
    assert f"{'a' * 240} … 60 more characters\nb\n… 2 more lines" in found


def test_a_page_over_time(tmp_path: Path) -> None:
    data = _data(_report(write_timed(tmp_path / "out")))
    measures = ("cost", "waiting", "pending", "nodes", "cpu", "cards", "lost", "evictions")
    metrics = ("cost", "waiting_p99", "pending", "allocation_mean")
    assert set(data["plots"]) == {
        *(f"time-{measure}-0" for measure in measures),
        *(f"seeds-{metric}-0" for metric in metrics),
        "pareto-0",
        "reasons-0",
    }
    text = " ".join(_Elements((tmp_path / "out.html").read_text(encoding="utf-8")).text)
    assert "cards come free again in runs over time, so the page shows none" in text
    front = data["plots"]["pareto-0"]["data"]["front"]
    # One costs half, the other waits less: both are on the front.
    assert [row[front["names"].index("v")] for row in front["rows"]] == ["Small nodes", "Large nodes"]


def test_the_metrics_of_the_front_are_chosen(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "out")
    assert "Allocation against pending" in _report(folder, "--pareto", "pending,allocation")
    result = kdsl("lab", "report", str(folder), "--pareto", "pendin,allocation")
    assert result.exit_code == 2
    assert "no metric `pendin`; did you mean `pending`?" in result.stderr
    result = kdsl("lab", "report", str(folder), "--pareto", "pending")
    assert (result.exit_code, "--pareto takes two metrics" in result.stderr) == (2, True)


def test_pictures(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "out", ("default", HOSTILE))
    _report(folder, "--png", str(tmp_path / "png"), "--svg", str(tmp_path / "svg"))
    names = {path.stem for path in (tmp_path / "png").iterdir()}
    assert names == {path.stem for path in (tmp_path / "svg").iterdir()}
    assert names >= {"traces", "load-allocation-default", "cards-1-default", "pareto-trace-2"}
    for path in (tmp_path / "png").iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")
    for path in (tmp_path / "svg").iterdir():
        text = path.read_text(encoding="utf-8")
        assert ElementTree.fromstring(text).tag.endswith("svg")
        assert "var(--" not in text, path.name
    assert "#0a5fa8" in (tmp_path / "svg" / "load-allocation-default.svg").read_text(encoding="utf-8")


def test_tables_as_csv(tmp_path: Path) -> None:
    _report(write_results(tmp_path / "out"), "--csv", str(tmp_path / "csv"))
    read = {
        path.stem: list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
        for path in (tmp_path / "csv").iterdir()
    }
    assert {name: len(rows) for name, rows in read.items()} == {"runs": 18, "figures": 78, "reasons": 18}
    wanted = {"trace": "other", "profile": "Random", "metric": "allocation", "load": "130"}
    (row,) = (row for row in read["figures"] if wanted.items() <= row.items())
    assert (row["seeds"], row["mean"], row["least"], row["most"]) == ("3", "91.0", "90.75", "91.25")
    assert float(row["high95"]) - float(row["mean"]) == pytest.approx(0.621, abs=0.001)
    assert read["reasons"][0]["pods"] == "4"
    _report(write_timed(tmp_path / "timed"), "--csv", str(tmp_path / "timed-csv"))
    rows = list(
        csv.DictReader((tmp_path / "timed-csv" / "time.csv").read_text(encoding="utf-8").splitlines())
    )
    assert {row["measure"] for row in rows} >= {"cost", "waiting", "nodes"}


def test_no_cell_of_a_csv_file_is_a_formula(tmp_path: Path) -> None:
    traces = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "a\r=1", "a\n=1", "\uff1d1", "plain=1"]
    folder = write_results(tmp_path / "out", traces=traces, profiles=["=cmd|' /C calc'!A0"], seeds=[1])
    _report(folder, "--csv", str(tmp_path / "csv"))
    for path in (tmp_path / "csv").iterdir():
        with path.open(encoding="utf-8", newline=None) as file:
            rows = list(csv.DictReader(file))
        assert list(dict.fromkeys(row["trace"] for row in rows)) == [
            *("'=1+1", "'+1", "'-1", "'@SUM(A1)", r"'\t=1", r"'\r=1", r"a\r=1", r"a\n=1"),
            *("'\uff1d1", "plain=1"),
        ]
        assert {row["profile"] for row in rows} == {"'=cmd|' /C calc'!A0"}


def test_negative_numbers_of_a_csv_file_stay_numbers(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "out", traces=["t"], profiles=["P"], seeds=[1])
    table = parquet.read_table(folder / "results.parquet").to_pydict()
    write_table(folder / "results.parquet", {**table, "lost_of_all": [-1.5] * len(LOADS)})
    _report(folder, "--csv", str(tmp_path / "csv"))
    with (tmp_path / "csv" / "runs.csv").open(encoding="utf-8") as file:
        assert [row["lost_of_all"] for row in csv.DictReader(file)] == ["-1.5"]


def test_runs_that_cannot_be_read_are_named_and_end_with_1(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "out")
    run = digest_of("default", "FGD", 42)
    (folder / "runs" / f"{run}.parquet").write_bytes(b"broken")
    result = kdsl("lab", "report", str(folder))
    assert result.exit_code == 1
    assert "error[K1175]: cannot read" in result.stderr and run in result.stderr
    found = " ".join(_Elements((tmp_path / "out.html").read_text(encoding="utf-8")).text)
    assert "Not everything could be read" in found and f"{run}.parquet" in found


def test_without_the_files_of_runs_there_are_still_figures(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "out")
    for path in (folder / "runs").iterdir():
        path.unlink()
    result = kdsl("lab", "report", str(folder))
    assert result.exit_code == 1
    text = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert set(_data(text)["plots"]) >= {"load-allocation-0", "pareto-0", "seeds-pending-1"}
    assert "18 more" in text or "and " in text


def test_a_folder_without_results_ends_with_2(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    result = kdsl("lab", "report", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert "holds no results.parquet" in result.stderr
    assert not (tmp_path / "out.html").exists()


def test_without_nodes_and_rules_the_page_says_so(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "out")
    for path in (*(folder / "nodes").iterdir(), *(folder / "rules").iterdir()):
        path.unlink()
    text = _report(folder)
    assert not any(key.startswith("cards") for key in _data(text)["plots"])
    found = " ".join(_Elements(text).text)
    assert "the page shows no cards" in found and "The page does not hold the text of these rules." in found


def test_many_runs_stay_a_page_of_sensible_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_ROWS", 20)
    monkeypatch.setattr(rules, "MOST_TEXTS", 4)
    folder = tmp_path / "out"
    traces, profiles = [f"trace-{at}" for at in range(3)], [f"P{at}" for at in range(12)]
    text = _report(write_results(folder, traces, profiles, (1, 2), pods=400))
    data = _data(text)
    shown = sum(len(each["rows"]) for each in data["decisions"].values())
    # 36 runs are examples, and 10,000 decisions are shown: 277 of each.
    assert (len(data["decisions"]), shown) == (36, 36 * 277)
    assert "The first 20 of 72 runs." in text
    assert "Of 8 variants more the page holds no rules." in text
    assert "Only the best 8 of 12 variants are drawn." in text
    assert f"the cards of 24 of 36 runs, on {', '.join(traces[:2])}" in text


def test_without_the_library_there_is_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(KdslError, match=r"install `kdsl\[report\]`"):
        library.vl_convert()


def test_odd_values_are_no_numbers(tmp_path: Path) -> None:
    columns = {
        "trace": ["t"] * 2,
        "profile": ["p", "q"],
        "parameters": ["no JSON", "[1]"],
        "seed": [1, 1],
        "load": [100, 100],
        "allocation": [float("inf"), 90.0],
        "pending": [None, 3],
        "run": ["a", "b"],
    }
    write_table(tmp_path / "out" / "results.parquet", columns)
    result = kdsl("lab", "report", str(tmp_path / "out"))
    assert result.exit_code == 1
    assert (
        "Infinity" not in (tmp_path / "out.html").read_text(encoding="utf-8").partition("page-data")[2][:5000]
    )


def _luminance(colour: str) -> float:
    """Return the relative luminance of a colour, by WCAG 2.2."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_text_and_labels_have_contrast(colours: dict[str, str]) -> None:
    paper = _luminance(colours["--paper"])
    for name in ("--ink", "--soft", *(f"--s{number + 1}" for number in range(theme.SERIES))):
        darker, lighter = sorted((paper, _luminance(colours[name])))
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, name
    assert colours.keys() == theme.LIGHT.keys()
    # Fuller cards are darker on a light page and lighter on a dark one: the order is seen without hues.
    levels = [_luminance(colours[f"--l{level}"]) for level in range(1, theme.LEVELS)]
    assert sorted(levels, reverse=paper > 0.5) == levels
