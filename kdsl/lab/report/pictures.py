"""Plots as pictures: PNG and SVG, in the colours of the light page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal

from kdsl.base.whole_file import whole_file
from kdsl.lab.report.contents import Contents
from kdsl.lab.report.library import vl_convert
from kdsl.lab.report.plots import VERSION, Plot
from kdsl.lab.report.theme import CONFIG, in_colours

_SCALE: Final = 2
_PPI: Final = 72 * _SCALE


def write_pictures(contents: Contents, folder: Path, form: Literal["png", "svg"] | str) -> list[Path]:
    """Write every plot, called by its kind and its trace; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for plot in contents.plots:
        path = folder / f"{file_name(contents, plot)}.{form}"
        svg: str = vl_convert().vegalite_to_svg(in_colours(plot.whole(CONFIG)), vl_version=VERSION)
        with whole_file(path) as beside:
            if form == "svg":
                beside.write_text(svg, encoding="utf-8")
            else:
                beside.write_bytes(vl_convert().svg_to_png(svg, scale=_SCALE, ppi=_PPI))
        found.append(path)
    return found


def file_name(contents: Contents, plot: Plot) -> str:
    """Return the name of a picture. Traces have their number in it where names alone are no file names."""
    if plot.key == "traces" or len(contents.study.traces) == 1:
        return plot.key
    name = contents.study.traces[plot.trace]
    return f"{plot.key}-{name if re.fullmatch(r'[A-Za-z0-9_]{1,60}', name) else f'trace-{plot.trace + 1}'}"
