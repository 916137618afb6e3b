#!/usr/bin/python3 -B
"""The page of accel report in a browser: light and dark, on a screen, a telephone and paper; it draws its data, asks nothing of the network, sorts its table, and says nothing wrong.
With KEEP, a folder, the screenshots stay there, for people to look at."""

import os
import tempfile
from pathlib import Path

from chromium import PROGRAM, Chromium, colours
from lib.calibrated import put
from lib.logs import busy, decision, write
from lib.programs import BUILD, start
from lib.tap import Tap

TOOL = str(BUILD / "accel")
tap = Tap()
if not PROGRAM:
    tap.ok(False, "chromium-headless-shell is there: scripts/install-deps browser installs it")
    tap.done()


def rgb(text):
    return tuple(int(text[i:i + 2], 16) for i in (1, 3, 5))


def share(counts, near, within=4):
    """The share of pixels whose colour is about this one."""
    return sum(n for pixel, n in counts.items() if max(abs(a - b) for a, b in zip(pixel, near)) <= within) / sum(counts.values())


with tempfile.TemporaryDirectory() as folder:
    kept = os.environ.get("KEEP", folder)
    page = f"{folder}/report.html"
    log = write(f"{folder}/log", [{"v": 1, "event": "banner", "host": "node17", "pid": 4711, "version": "0.1.0", "gpu": "NVIDIA H100 80GB HBM3"}] + busy())
    model = f"{folder}/model"
    put(model, {'[gpu "NVIDIA H100 80GB HBM3" cuda=13.0 cublas=130100]': "up_gbps=21.5\ndgemm 100x100x100:0.05 2000x2000x2000:1.6\n"})
    done = start(TOOL, "report", "--html", "--model", model, log, "-o", page, env={"HOME": folder})
    tap.ok(done.returncode == 0, "the page is made", done)
    chromium = Chromium()

    for scheme, background, marks in (("light", "#f6f7f9", ("#0a66b8", "#c2520a")), ("dark", "#0f1318", ("#5aaef5", "#f0924a"))):
        chromium.show(page, 1100, 1200, scheme=scheme)
        picture = chromium.screenshot()
        Path(kept, f"report-{scheme}.png").write_bytes(picture)
        counts = colours(picture)
        tap.ok(share(counts, rgb(background)) > 0.05 and all(0.0003 < share(counts, rgb(mark), 40) < 0.2 for mark in marks) and max(counts.values()) < 0.9 * sum(counts.values()),
               f"{scheme}: the background, and marks of the GPU and of the CPU", share(counts, rgb(background)), [share(counts, rgb(mark), 40) for mark in marks])
        tap.ok(not chromium.said(), f"{scheme}: no message, no request", *chromium.said())
        Path(kept, f"report-{scheme}-whole.png").write_bytes(chromium.screenshot(captureBeyondViewport=True))

    seen = chromium.evaluate("""JSON.parse(JSON.stringify({
        charts: [...document.querySelectorAll('svg')].map(s => [s.getBoundingClientRect().width, s.querySelectorAll('.mark, .lane').length]),
        outside: [...document.querySelectorAll('svg text')].filter(t => { const a = t.getBoundingClientRect(), b = t.ownerSVGElement.getBoundingClientRect();
            return a.left < b.left - 1 || a.right > b.right + 1 || a.top < b.top - 1 || a.bottom > b.bottom + 1; }).map(t => t.textContent),
        rows: document.querySelectorAll('tbody tr').length, heads: [...document.querySelectorAll('.sorts th button')].length, wide: document.documentElement.scrollWidth}))""")
    tap.ok(len(seen["charts"]) == 3 and all(width > 900 and marks > 4 for width, marks in seen["charts"]) and not seen["outside"] and seen["rows"] > 10 and seen["heads"] == 11 and seen["wide"] <= 1100,
           "three charts, no label outside of them, the table", seen)

    drawn = chromium.evaluate("""(() => { const data = JSON.parse(document.getElementById('data').textContent), of = (chart, what) => [...document.querySelectorAll('#' + chart + ' ' + what)];
        return ['scatter', 'roofline'].map(chart => [data[chart].marks.length, ...['circle.mark', 'path.mark', 'rect.mark'].map(what => of(chart, what).length),
                data[chart].marks.map(mark => mark[4]).join() == of(chart, '.mark title').map(title => title.textContent).join()]).concat([[data.timeline.lanes.map(lane => lane.name),
                of('timeline', '.name').map(text => text.firstChild.textContent), of('roofline', '.roof-name').map(text => text.textContent),
                [...document.querySelectorAll('.key')].map(key => key.textContent)]]); })()""")
    (lanes, names, roofs, keys), marks = drawn[2], drawn[:2]
    tap.ok(all(count == sum(shapes) and all(shapes) and same for count, *shapes, same in marks) and lanes == names and len(lanes) > 1, "each mark and each lane of the data is drawn", drawn)
    tap.ok(roofs == ["GPU, double precision: 9.9 Tflop/s", "operands copied to the GPU: 21.5 GB/s"] and keys == 3 * [
        "begun on the GPU, finished on the CPU after a failure (squares)on the GPU (circles)on the CPU (diamonds)"], "the ceilings, and the key", roofs, keys)
    decades = chromium.evaluate("""(() => { const data = JSON.parse(document.getElementById('data').textContent).roofline, middle = e => { const box = e.getBoundingClientRect(); return box.y + box.height / 2; };
        const line = middle(document.querySelector('#roofline .roof.gpu')), log = Math.log10(data.roofs[0][1]);
        return [...document.querySelectorAll('#roofline .mark')].map((mark, i) => [log - data.marks[i][2], middle(mark) - line]).filter(([below]) => below > 0.2).map(([below, pixels]) => pixels / below); })()""")
    tap.ok(len(decades) > 4 and 0 < min(decades) and max(decades) < 1.02 * min(decades), "a mark is as far below the ceiling as its rate is", decades)

    column = """[...document.querySelectorAll('.sorts tbody tr')].map(row => row.cells[%d].dataset.value ? Number(row.cells[%d].dataset.value) : row.cells[%d].textContent)"""
    for head, name, numbers in ((4, "calls", True), (0, "routines", False)):
        orders = []
        for _ in range(2):
            chromium.evaluate(f"document.querySelectorAll('.sorts th button')[{head}].click()")
            orders.append((chromium.evaluate(column % (head, head, head)), chromium.evaluate(f"document.querySelectorAll('.sorts thead th')[{head}].getAttribute('aria-sort')")))
        up, down = sorted(orders[0][0]), sorted(orders[0][0], reverse=True)
        tap.ok(orders == ([(down, "descending"), (up, "ascending")] if numbers else [(up, "ascending"), (down, "descending")]), f"a click on a heading sorts by {name}", orders)

    chromium.show(page, 390, 800)
    Path(kept, "report-telephone.png").write_bytes(chromium.screenshot())
    tap.ok(chromium.evaluate("document.documentElement.scrollWidth") <= 390, "a telephone's screen is wide enough", chromium.evaluate("document.documentElement.scrollWidth"))

    chromium.show(page, 1100, 1200, scheme="dark", media="print")
    paper = chromium.screenshot()
    Path(kept, "report-print.png").write_bytes(paper)
    tap.ok(share(colours(paper), (255, 255, 255)) > 0.7, "paper is white, also where the screen is dark", share(colours(paper), (255, 255, 255)))

    chromium("Emulation.setScriptExecutionDisabled", value=True)
    chromium.show(page, 1100, 1200)
    Path(kept, "report-without-script.png").write_bytes(chromium.screenshot(captureBeyondViewport=True))
    plain = chromium.evaluate("""[document.body.innerText, [...document.querySelectorAll('svg')].map(svg => svg.getBoundingClientRect().height), document.querySelectorAll('.sorts tbody tr').length]""")
    tap.ok(plain[0].count("This page's own script draws the chart. The table of routines has the numbers.") == 3 and plain[1] == [0, 0, 0] and plain[2] > 10 and "What to change" in plain[0],
           "without its script, the page has all but the charts, and says so", plain)
    chromium("Emulation.setScriptExecutionDisabled", value=False)

    evil = "</title><script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\">"
    log = write(f"{folder}/evil", [decision(1, sym=evil, why=evil, host=evil), {"v": 1, "event": "banner", "pid": 1, evil: evil}])
    start(TOOL, "report", "--html", log, "-o", page, env={"HOME": folder})
    chromium.show(page, 1100, 1200)
    found = chromium.evaluate("[document.title.startsWith('libaccel'), document.querySelectorAll('img').length, document.scripts.length, document.body.textContent.includes('onerror')]")
    names = chromium.evaluate("[...document.querySelectorAll('svg title')].map(title => title.textContent).join()")
    tap.ok(evil in names, "and so is it in the charts", names[:500])
    tap.ok(found == [True, 0, 2, True] and not chromium.said(), "a log's HTML is text", found, *chromium.said())
    chromium.close()
tap.done()
