"""Writes the rights of each overlay in `deploy/`: `python -m tests.deploy.rights`. The tests compare them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
OVERLAYS = ROOT / "deploy/overlays"
OPTIONS = {
    "second-scheduler": ("--lease", "kdsl"),
    "only-scheduler": ("--lease", "kube-scheduler"),
    "shadow": ("--shadow",),
}
NOTE = "# Written by `python -m tests.deploy.rights`: what `kdsl rbac{options}` prints for the rules of this overlay.\n"


def rights_of(overlay: str) -> str:
    """Return what `rbac.yaml` of an overlay must hold."""
    own = OVERLAYS / overlay / "site.kdsl"
    rules = own if own.exists() else ROOT / "deploy/base/rules/site.kdsl"
    with tempfile.TemporaryDirectory() as folder:
        # As in the image, where rules are mounted elsewhere.
        config = Path(folder) / "kdsl.yaml"
        text = (ROOT / "deploy/base/kdsl.yaml").read_text(encoding="utf-8")
        config.write_text(text.replace("/etc/kdsl/rules", str(rules)), encoding="utf-8")
        command = [sys.executable, "-m", "kdsl.cli.main", "rbac", "--config", str(config), *OPTIONS[overlay]]
        made = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return NOTE.format(options="".join(f" {option}" for option in OPTIONS[overlay])) + made.stdout


if __name__ == "__main__":
    for name in OPTIONS:
        (OVERLAYS / name / "rbac.yaml").write_text(rights_of(name), encoding="utf-8")
