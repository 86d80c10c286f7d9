"""Drives a headless Chromium over its debugging pipe, with the standard library alone."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time

# Records layout shifts, which must not occur on a page that is updated in place.
OBSERVE = """
window.layoutShift = 0;
new PerformanceObserver(list => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.layoutShift += entry.value;
}).observe({type: 'layout-shift', buffered: true});
"""


class Browser:
  """A tab. Collects errors of its console, and errors while loading, in `errors`."""

  def __init__(self, width=1240, height=1180):
    self.errors = []
    self._next = 0
    self._buffer = b""
    self._profile = tempfile.mkdtemp()
    to_browser, self._out = os.pipe()
    self._in, from_browser = os.pipe()

    def connect():
      # First copies both ends to high numbers, because either may already have number 3 or 4.
      ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 64) for end in (to_browser, from_browser)]
      for number, end in zip((3, 4), ends):
        os.dup2(end, number)

    self._process = subprocess.Popen(
        ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
         f"--user-data-dir={self._profile}", "--no-first-run", "--disable-extensions", "about:blank"],
        preexec_fn=connect, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(to_browser)
    os.close(from_browser)
    target = self._call("Target.createTarget", url="about:blank", session=None)["targetId"]
    self._session = self._call("Target.attachToTarget", targetId=target, flatten=True, session=None)["sessionId"]
    for domain in ("Page", "Runtime", "Log"):
      self.call(domain + ".enable")
    self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
    self.call("Page.addScriptToEvaluateOnNewDocument", source=OBSERVE)

  def close(self):
    self._process.kill()
    self._process.wait()
    shutil.rmtree(self._profile, ignore_errors=True)

  def call(self, method, **params):
    return self._call(method, session=self._session, **params)

  def go(self, url):
    self.call("Page.navigate", url=url)

  def evaluate(self, expression):
    result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
    if "exceptionDetails" in result:
      raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
    return result["result"].get("value")

  def wait(self, expression, seconds=30):
    """Waits until a JavaScript expression is true. Returns how long this took."""
    began = time.monotonic()
    while not self.evaluate(expression):
      if time.monotonic() - began > seconds:
        raise TimeoutError(f"{expression} is not true after {seconds} s; the page says: {self.text()[:1000]}")
      time.sleep(0.05)
    return time.monotonic() - began

  def text(self):
    return self.evaluate("document.body ? document.body.innerText : ''")

  def screenshot(self, path):
    data = self.call("Page.captureScreenshot", format="png")["data"]
    with open(path, "wb") as file:
      file.write(base64.b64decode(data))

  def _call(self, method, session, **params):
    self._next += 1
    message = {"id": self._next, "method": method, "params": params}
    if session:
      message["sessionId"] = session
    os.write(self._out, json.dumps(message).encode() + b"\0")
    while True:
      reply = self._read()
      if reply.get("id") == self._next:
        if "error" in reply:
          raise RuntimeError(f"{method}: {reply['error']}")
        return reply["result"]
      self._note(reply)

  def _read(self):
    while b"\0" not in self._buffer:
      chunk = os.read(self._in, 1 << 20)
      if not chunk:
        raise RuntimeError("the browser has ended")
      self._buffer += chunk
    message, self._buffer = self._buffer.split(b"\0", 1)
    return json.loads(message)

  def _note(self, event):
    params = event.get("params", {})
    if event.get("method") == "Runtime.exceptionThrown":
      self.errors.append(json.dumps(params["exceptionDetails"]))
    if event.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
      self.errors.append(json.dumps(params["args"]))
    if event.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
      self.errors.append(params["entry"]["text"])
