"""Test the browser-server connection when the user acts faster than the browser responds."""

from playwright.sync_api import Page, expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from benchmarks.browser import Site
from tests.helpers.browser import open_page, press, slider
from tests.helpers.visitors import wait_until_settled

# Simulate a busy browser: server messages are held, each in its own task, while `hold` is set.
HOLD = """(() => {
  const Socket = window.WebSocket, waiting = [];
  window.hold = false;
  window.WebSocket = class extends Socket {
    addEventListener(type, listener) {
      const later = (event) =>
        window.hold ? waiting.push(() => listener.call(this, event)) : listener.call(this, event);
      super.addEventListener(type, type === "message" ? later : listener);
    }
  };
  window.let_go = async () => {
    while (waiting.length) {
      waiting.shift()();
      await new Promise((done) => setTimeout(done));
    }
    window.hold = false;
  };
})()"""


def test_moving_a_slider_back_quickly_keeps_the_connection(own_page: Page, site: Site):
    """The browser reports that it keeps the last picture, then learns that a run has ended."""
    page = own_page
    page.add_init_script(HOLD)
    with page.expect_websocket() as socket_info:
        open_page(page, site, "/inside-the-cache?inside_the_cache_tokens=6", "Inside the cache")
    socket, step = socket_info.value, slider(page, "Step")
    received: list[ForwardMsg] = []
    socket.on("framereceived", lambda payload: received.append(_message(payload)))
    press(step, "End")
    expect(page.get_by_text("Step 6 (decode)")).to_be_visible()
    press(step, "ArrowLeft")
    expect(page.get_by_text("Step 5 (decode)")).to_be_visible()
    wait_until_settled(page)

    page.evaluate("() => { window.hold = true; }")
    with socket.expect_event("framereceived", _is_end_of_run):
        step.press("Home")
    received.clear()
    with socket.expect_event("framereceived", _is_end_of_run):
        step.press("End")
    assert any(message.WhichOneof("type") == "ref_hash" for message in received)
    page.evaluate("() => window.let_go()")
    expect(page.get_by_text("Step 6 (decode)")).to_be_visible()
    wait_until_settled(page)
    expect(page.get_by_test_id("stDialog")).to_have_count(0)  # Streamlit's "Connection error"


def _is_end_of_run(payload: str | bytes) -> bool:
    message = _message(payload)
    ended = message.WhichOneof("type") == "script_finished"
    return ended and message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY


def _message(payload: str | bytes) -> ForwardMsg:
    assert isinstance(payload, bytes)
    return ForwardMsg.FromString(payload)
