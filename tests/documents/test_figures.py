"""Tests the figures that `make figures` draws. The page names each figure. No two curves of a panel look alike, and no legend
covers a curve. Axes have names and few ticks. The tests need matplotlib (make deps-figures)."""

import importlib
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
pytest.importorskip("matplotlib", reason="figures need python3-matplotlib (make deps-figures)")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Runs bench/figures.py once, and returns {name: figure}."""
    sys.path.insert(0, str(ROOT / "bench"))
    figures = importlib.import_module("figures")
    sys.path.remove(str(ROOT / "bench"))
    found, write, argv = {}, figures.save, sys.argv

    def save(figure, directory, name):
        figure.canvas.draw()
        found[name] = figure
        write(figure, directory, name)

    folder = tmp_path_factory.mktemp("figures")
    figures.save, sys.argv = save, ["figures.py", str(folder)]
    try:
        figures.main()
    finally:
        figures.save, sys.argv = write, argv
        sys.modules.pop("figures")
    assert {path.stem for path in folder.glob("*.svg")} == set(found)
    return found


def panels(drawn):
    """Returns (name, axes) for each panel with curves. Schematic drawings have no axes."""
    return [(name, axes) for name, figure in drawn.items() for axes in figure.axes if axes.axison]


def test_the_page_names_every_figure(drawn):
    pages = "".join((ROOT / "sql" / name).read_text() for name in ("papers.md", "choosing.md"))
    assert set(re.findall(r"`(\w+)\.svg`", pages)) == set(drawn)


def test_curves_can_be_told_apart(drawn):
    """Curves differ in colour, and also in black and white by line style, marker or width."""
    for name, axes in panels(drawn):
        curves = [line for line in axes.lines if len(line.get_xdata()) > 2]
        assert curves, name
        looks = [(str(line.get_linestyle()) + str(line._dash_pattern), line.get_marker(), line.get_linewidth()) for line in curves]
        assert len(set(looks)) == len(looks), (name, looks)
        colours = [(line.get_color(), look) for line, look in zip(curves, looks)]
        assert len(set(colours)) == len(colours), name


def test_legends_hide_no_curve(drawn):
    for name, axes in panels(drawn):
        if axes.get_legend() is None:
            continue
        box = axes.get_legend().get_window_extent()
        for line in axes.lines:
            points = axes.transData.transform([p for p in zip(line.get_xdata(), line.get_ydata()) if p[1] > 0])
            assert not any(box.contains(*point) for point in points), (name, line.get_label())


def test_axes_have_names_and_few_ticks(drawn):
    for name, axes in panels(drawn):
        shared = [other for other in axes.figure.axes if other.axison]
        assert any(other.get_xlabel() for other in shared) and any(other.get_ylabel() for other in shared)
        for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            ticks = [tick for tick in axis.get_majorticklocs() if low <= tick <= high]
            assert 3 <= len(ticks) <= 11, (name, axis.axis_name, ticks)
