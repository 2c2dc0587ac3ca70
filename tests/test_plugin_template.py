"""`examples/plugin-template` is a distribution of its own: built, installed with pip into a fresh environment,
and used there by rules and profiles. Nothing comes from a network.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEMPLATE = ROOT / "examples" / "plugin-template"
CONFIG = ("--config", "example/kdsl.yaml")
CLUSTER = ("--cluster", "example/cluster.yaml", "--pods", "example/pods.yaml")


def run(*command: str, folder: Path = TEMPLATE) -> str:
    """Run a command that must succeed, and return what it prints."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of a fresh environment with this kdsl and the template in it."""
    folder = tmp_path_factory.mktemp("template")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    offline = ("--quiet", "--no-index", "--no-deps")
    run(*pip, "wheel", *offline, "--no-build-isolation", "--wheel-dir", str(folder), str(TEMPLATE))
    (wheel,) = folder.glob("*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", str(folder / "env"))
    fresh = str(folder / "env" / "bin" / "python")
    run(*pip, "--python", fresh, "install", *offline, str(wheel))
    packages = Path(run(fresh, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    assert (packages / "kdsl_racks" / "kdsl-plugin.yaml").is_file()
    # kdsl and what it needs are those of this environment.
    around = (str(ROOT), str(ROOT / "plugins"), sysconfig.get_path("purelib"))
    (packages / "around.pth").write_text("\n".join(around) + "\n")
    return fresh


def kdsl(python: str, *commands: tuple[str, ...]) -> list[tuple[int, str]]:
    """Run commands one after the other in one process; return the exit code and the output of each."""
    results: list[tuple[int, str]] = json.loads(run(python, "-c", _SEVERAL, json.dumps(commands)))
    return [(code, output) for code, output in results]


_SEVERAL = """
import contextlib, io, json, sys
from kdsl.cli.main import run
results = []
for command in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code = run(command)
    results.append((code, printed.getvalue()))
print(json.dumps(results))
"""


def test_the_template_works_in_a_fresh_environment(python: str) -> None:
    (_, listed), doctor, check, tests, formatted, (code, explained) = kdsl(
        python,
        ("plugins", "list", "-o", "json"),
        ("plugins", "doctor", "racks", *CONFIG),
        ("check", *CONFIG),
        ("test", *CONFIG, "tests"),
        ("fmt", "--check", "example/rules", "src"),
        ("explain", "web", *CONFIG, *CLUSTER, "-o", "json"),
    )
    (plugin,) = (each for each in json.loads(listed)["plugins"] if each["name"] == "racks")
    assert (plugin["distribution"], plugin["version"], plugin["active"]) == ("kdsl-racks", "1.0.0", False)
    assert [each["name"] for each in json.loads(listed)["rules"]] == ["racks"]
    assert doctor == check == formatted == (0, "")
    assert tests[0] == 0 and "1 passed" in tests[1]

    assert code == 0
    decision = json.loads(explained)["decision"]
    assert decision["node"] == "near"
    by = {each["node"]: each["status"]["plugin"] for each in decision["verdicts"] if not each["feasible"]}
    assert by == {"closed": "racks", "elsewhere": "SameHall"}
    scores = {
        each["node"]: {cell["plugin"]: cell["raw"] for cell in each["scores"]}
        for each in decision["verdicts"]
        if each["feasible"]
    }
    assert scores == {"near": {"NearRack": 1, "racks": 100}, "far": {"NearRack": 2, "racks": 100}}


def test_its_own_tests_pass(python: str) -> None:
    tested = run(python, "-m", "pytest", "-p", "no:cacheprovider", "--kdsl-config", CONFIG[1], "tests")
    assert "8 passed" in tested
