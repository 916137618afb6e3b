"""Headless Chromium, by its protocol over a pipe: https://chromedevtools.github.io/devtools-protocol"""

import base64
import json
import os
import shutil
import struct
import subprocess
import tempfile
import zlib

PROGRAM = shutil.which("chromium-headless-shell") or shutil.which("chromium")


class Chromium:
    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="accel-chromium-")
        to, back = os.pipe(), os.pipe()

        def move():
            os.dup2(os.dup(to[0]), 3), os.dup2(os.dup(back[1]), 4)

        # As root it has no sandbox. The pages are our own.
        self.process = subprocess.Popen(
            [PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
             f"--user-data-dir={self.home}", "--no-first-run"], preexec_fn=move, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self.home})
        os.close(to[0]), os.close(back[1])
        self.to, self.back, self.buffer, self.count, self.events, self.session = to[1], back[0], b"", 0, [], None
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self.session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(domain + ".enable")

    def read(self):
        """The next message; EOFError if Chromium has ended."""
        while b"\0" not in self.buffer:
            more = os.read(self.back, 1 << 20)
            if not more:
                raise EOFError("Chromium has ended")
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def __call__(self, method, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        os.write(self.to, json.dumps({**message, "sessionId": self.session} if self.session else message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def show(self, path, width, height, **media):
        """Loads a page, of a path or an address; media: scheme="dark", media="print"."""
        features = [{"name": "prefers-color-scheme", "value": media.get("scheme", "light")}]
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self("Emulation.setEmulatedMedia", media=media.get("media", "screen"), features=features)
        self.events.clear()
        self("Page.navigate", url=path if "://" in path else "file://" + path)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.read())

    def said(self):
        """What the page has made the browser say, and the requests that it has made beside its own."""
        told = [event for event in self.events if event["method"] in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")]
        requests = [event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return told + requests[1:]

    def evaluate(self, script):
        answer = self("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def screenshot(self, **options):
        return base64.b64decode(self("Page.captureScreenshot", format="png", **options)["data"])

    def close(self):
        self.session = None
        self("Browser.close")
        self.process.wait(timeout=300)
        os.close(self.to), os.close(self.back)
        shutil.rmtree(self.home, ignore_errors=True)


def colours(png):
    """How many pixels of a PNG of 8 bits have each colour, as (red, green, blue)."""
    at, data = 8, b""
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        chunk = png[at + 8:at + 8 + length]
        at += 12 + length
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack(">IIBB", chunk[:10])
        data += chunk if kind == b"IDAT" else b""
    depth = {2: 3, 6: 4}[colour]
    raw, above, counts = zlib.decompress(data), bytearray(width * depth), {}
    for row in range(height):
        start = row * (width * depth + 1)
        kind, line = raw[start], bytearray(raw[start + 1:start + 1 + width * depth])
        for i in range(len(line) if kind else 0):
            left, up, corner = line[i - depth] if i >= depth else 0, above[i], above[i - depth] if i >= depth else 0
            if kind == 4:
                p = left + up - corner
                a, b, c = abs(p - left), abs(p - up), abs(p - corner)
                add = left if a <= b and a <= c else up if b <= c else corner
            else:
                add = (0, left, up, (left + up) // 2)[kind]
            line[i] = (line[i] + add) & 255
        for i in range(0, len(line), depth):
            pixel = (line[i], line[i + 1], line[i + 2])
            counts[pixel] = counts.get(pixel, 0) + 1
        above = line
    return counts
