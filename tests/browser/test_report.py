#!/usr/bin/env -S /usr/bin/python3 -B tests/tap.py
"""The page of accel report in a browser: light and dark, on a screen, a telephone and paper; it draws its data, asks
nothing of the network, sorts its table, and says nothing wrong. With KEEP, a folder, the screenshots stay there, for
people to look at."""

import os
from pathlib import Path

import pytest

from browser.chromium import PROGRAM, Chromium, colours
from lib.calibrated import put
from lib.logs import busy, decision, write
from lib.programs import BUILD, start

TOOL = str(BUILD / "accel")
BANNER = {"v": 1, "event": "banner", "host": "node17", "pid": 4711, "version": "0.1.0", "gpu": "NVIDIA H100 80GB HBM3"}
EVIL = "</title><script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\">"
KEY = "begun on the GPU, finished on the CPU after a failure (squares)on the GPU (circles)on the CPU (diamonds)"
NO_SCRIPT = "This page's own script draws the chart. The table of routines has the numbers."
# What is to be seen on the page.
SEEN = """(() => {
    const outside = text => {
        const a = text.getBoundingClientRect(), b = text.ownerSVGElement.getBoundingClientRect();
        return a.left < b.left - 1 || a.right > b.right + 1 || a.top < b.top - 1 || a.bottom > b.bottom + 1;
    };
    const all = what => [...document.querySelectorAll(what)];
    return JSON.parse(JSON.stringify({
        charts: all('svg').map(s => [s.getBoundingClientRect().width, s.querySelectorAll('.mark, .lane').length]),
        outside: all('svg text').filter(outside).map(text => text.textContent), rows: all('tbody tr').length,
        heads: all('.sorts th button').length, wide: document.documentElement.scrollWidth}));
})()"""
# Of what the page's data has, what is drawn.
DRAWN = """(() => {
    const data = JSON.parse(document.getElementById('data').textContent);
    const of = (chart, what) => [...document.querySelectorAll('#' + chart + ' ' + what)];
    const texts = list => list.map(element => element.textContent);
    return ['scatter', 'roofline'].map(chart => [
        data[chart].marks.length, ...['circle.mark', 'path.mark', 'rect.mark'].map(what => of(chart, what).length),
        data[chart].marks.map(mark => mark[4]).join() == texts(of(chart, '.mark title')).join()]).concat([[
            data.timeline.lanes.map(lane => lane.name),
            of('timeline', '.name').map(text => text.firstChild.textContent),
            texts(of('roofline', '.roof-name')), texts([...document.querySelectorAll('.key')])]]);
})()"""
# How many pixels a mark is below the ceiling for each decade that its rate is.
DECADES = """(() => {
    const data = JSON.parse(document.getElementById('data').textContent).roofline;
    const middle = e => { const box = e.getBoundingClientRect(); return box.y + box.height / 2; };
    const line = middle(document.querySelector('#roofline .roof.gpu')), log = Math.log10(data.roofs[0][1]);
    return [...document.querySelectorAll('#roofline .mark')]
        .map((mark, i) => [log - data.marks[i][2], middle(mark) - line])
        .filter(([below]) => below > 0.2).map(([below, pixels]) => pixels / below);
})()"""
WITHOUT_SCRIPT = """[
    document.body.innerText, [...document.querySelectorAll('svg')].map(svg => svg.getBoundingClientRect().height),
    document.querySelectorAll('.sorts tbody tr').length]"""
# The values of a column of the table.
COLUMN = """[...document.querySelectorAll('.sorts tbody tr')].map(row => row.cells[%d])
    .map(cell => cell.dataset.value ? Number(cell.dataset.value) : cell.textContent)"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Where screenshots go."""
    return Path(os.environ.get("KEEP") or tmp_path_factory.mktemp("screenshots"))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    log, model = write(folder / "log", [BANNER] + busy()), folder / "model"
    put(model,
        {'[gpu "NVIDIA H100 80GB HBM3" cuda=13.0 cublas=130100]': "up_gbps=21.5\ndgemm 100x100x100:0.05 "
                                                                  "2000x2000x2000:1.6\n"})
    return made(folder, "--model", model, log)


def made(folder, *arguments):
    done = start(TOOL, "report", "--html", *arguments, "-o", folder / "report.html", env={"HOME": str(folder)})
    assert done.returncode == 0, done.stderr
    return f"{folder}/report.html"


@pytest.fixture(scope="module")
def browser():
    assert PROGRAM, "chromium-headless-shell is not there: scripts/install-deps browser installs it"
    chromium = Chromium()
    yield chromium
    chromium.close()


@pytest.fixture
def chromium(browser, page):
    """It shows the page on a screen."""
    browser.show(page, 1100, 1200)
    return browser


def rgb(text):
    return tuple(int(text[i:i + 2], 16) for i in (1, 3, 5))


def share(counts, near, within=4):
    """The share of pixels whose colour is about this one."""
    return sum(n for pixel, n in counts.items() if max(abs(a - b) for a,
                                                       b in zip(pixel, near)) <= within) / sum(counts.values())


@pytest.mark.parametrize("scheme, background, marks", [("light", "#f6f7f9", ("#0a66b8", "#c2520a")),
                                                       ("dark", "#0f1318", ("#5aaef5", "#f0924a"))],
                         ids=["light", "dark"])
def test_the_background_and_marks_of_the_gpu_and_of_the_cpu(browser, page, kept, scheme, background, marks):
    browser.show(page, 1100, 1200, scheme=scheme)
    picture = browser.screenshot()
    (kept / f"report-{scheme}.png").write_bytes(picture)
    counts = colours(picture)
    assert share(counts, rgb(background)) > 0.05
    for mark in marks:
        assert 0.0003 < share(counts, rgb(mark), 40) < 0.2
    assert max(counts.values()) < 0.9 * sum(counts.values())
    assert not browser.said(), "no message, no request"
    (kept / f"report-{scheme}-whole.png").write_bytes(browser.screenshot(captureBeyondViewport=True))


def test_three_charts_no_label_outside_of_them_the_table(chromium):
    seen = chromium.evaluate(SEEN)
    assert len(seen["charts"]) == 3
    for width, marks in seen["charts"]:
        assert width > 900
        assert marks > 4
    assert not seen["outside"]
    assert seen["rows"] > 10
    assert seen["heads"] == 11
    assert seen["wide"] <= 1100


def test_each_mark_and_each_lane_of_the_data_is_drawn(chromium):
    *charts, (lanes, names, _, _) = chromium.evaluate(DRAWN)
    for count, *shapes, same in charts:
        assert count == sum(shapes)
        assert all(shapes)
        assert same
    assert lanes == names
    assert len(lanes) > 1


def test_the_ceilings_and_the_key(chromium):
    _, _, (_, _, roofs, keys) = chromium.evaluate(DRAWN)
    assert roofs == ["GPU, double precision: 9.9 Tflop/s", "operands copied to the GPU: 21.5 GB/s"]
    assert keys == 3 * [KEY]


def test_a_mark_is_as_far_below_the_ceiling_as_its_rate_is(chromium):
    decades = chromium.evaluate(DECADES)
    assert len(decades) > 4
    assert min(decades) > 0
    assert max(decades) < 1.02 * min(decades)


@pytest.mark.parametrize("head, first", [pytest.param(4, "descending", id="calls"),
                                         pytest.param(0, "ascending", id="routines")])
def test_a_click_on_a_heading_sorts(chromium, head, first):
    for order in (first, "ascending" if first == "descending" else "descending"):
        chromium.evaluate(f"document.querySelectorAll('.sorts th button')[{head}].click()")
        assert chromium.evaluate(f"document.querySelectorAll('.sorts thead "
                                 f"th')[{head}].getAttribute('aria-sort')") == order
        column = chromium.evaluate(COLUMN % head)
        assert column == sorted(column, reverse=order == "descending")


def test_a_telephone_s_screen_is_wide_enough(browser, page, kept):
    browser.show(page, 390, 800)
    (kept / "report-telephone.png").write_bytes(browser.screenshot())
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390


def test_paper_is_white_also_where_the_screen_is_dark(browser, page, kept):
    browser.show(page, 1100, 1200, scheme="dark", media="print")
    paper = browser.screenshot()
    (kept / "report-print.png").write_bytes(paper)
    assert share(colours(paper), (255, 255, 255)) > 0.7


def test_without_its_script_the_page_has_all_but_the_charts_and_says_so(browser, page, kept):
    browser("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.show(page, 1100, 1200)
        (kept / "report-without-script.png").write_bytes(browser.screenshot(captureBeyondViewport=True))
        text, heights, rows = browser.evaluate(WITHOUT_SCRIPT)
    finally:
        browser("Emulation.setScriptExecutionDisabled", value=False)
    assert text.count(NO_SCRIPT) == 3
    assert heights == [0, 0, 0]
    assert rows > 10
    assert "What to change" in text


def test_a_log_s_html_is_text_and_so_is_it_in_the_charts(browser, tmp_path):
    log = write(tmp_path / "evil", [decision(1, sym=EVIL, why=EVIL, host=EVIL),
                                    {"v": 1, "event": "banner", "pid": 1, EVIL: EVIL}])
    browser.show(made(tmp_path, log), 1100, 1200)
    assert browser.evaluate("document.title").startswith("libaccel")
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert browser.evaluate("document.scripts.length") == 2
    assert browser.evaluate("document.body.textContent.includes('onerror')")
    assert not browser.said()
    assert EVIL in browser.evaluate("[...document.querySelectorAll('svg title')].map(title => "
                                    "title.textContent).join()")
