"""Writes the rights of each overlay in `deploy/`: `python -m tests.deploy.rights`. The tests compare them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
_EXTENDER = ("--extender", "--name", "kdsl-extender", "--service-account", "kdsl-extender")
OPTIONS = {
    "overlays/second-scheduler": ("--lease", "kdsl"),
    "overlays/only-scheduler": ("--lease", "kube-scheduler"),
    "overlays/shadow": ("--shadow",),
    "extender/overlays/rules": _EXTENDER,
    "extender/overlays/webhook": (*_EXTENDER, "--webhook-configuration", "kdsl-extender"),
}
"""By overlay, what `kdsl rbac` is told."""
SCHEDULERS = tuple(name for name in OPTIONS if not name.startswith("extender/"))
EXTENDERS = tuple(name for name in OPTIONS if name.startswith("extender/"))
NOTE = "# Written by `python -m tests.deploy.rights`: what `kdsl rbac{options}` prints for the rules of this overlay.\n"


def rights_of(overlay: str) -> str:
    """Return what `rbac.yaml` of an overlay must hold."""
    own, base = DEPLOY / overlay / "site.kdsl", (DEPLOY / overlay).parents[1] / "base"
    rules = own if own.exists() else base / "rules/site.kdsl"
    with tempfile.TemporaryDirectory() as folder:
        # As in the image, where rules are mounted elsewhere.
        config = Path(folder) / "kdsl.yaml"
        text = (base / "kdsl.yaml").read_text(encoding="utf-8")
        config.write_text(text.replace("/etc/kdsl/rules", str(rules)), encoding="utf-8")
        command = [sys.executable, "-m", "kdsl.cli.main", "rbac", "--config", str(config), *OPTIONS[overlay]]
        made = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return NOTE.format(options="".join(f" {option}" for option in OPTIONS[overlay])) + made.stdout


if __name__ == "__main__":
    for name in OPTIONS:
        (DEPLOY / name / "rbac.yaml").write_text(rights_of(name), encoding="utf-8")
