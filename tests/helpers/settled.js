// Runs in every page that a test opens, before the page's own scripts. Tracks the page's requests,
// the server's responses, and DOM changes since then.
(() => {
  const RERUN = (11 << 3) | 2; // first byte of a rerun request: field 11
  const NEW_SESSION = 4, SCRIPT_FINISHED = 6, FINISHED_EARLY_FOR_RERUN = 2;
  const QUIET_FRAMES = 5;
  // sequence numbers of the last events: a run was requested, started, ended
  const runs = { requested: 0, started: 0, ended: 0 };
  let events = 0, changes = 0;

  // Reads a server message up to the first field that determines its type.
  function readMessage(bytes) {
    let at = 0;
    const varint = () => {
      let value = 0, factor = 1;
      for (;;) {
        const byte = bytes[at++];
        value += (byte & 127) * factor;
        if (byte < 128) return value;
        factor *= 128;
      }
    };
    while (at < bytes.length) {
      const tag = varint(), field = Math.floor(tag / 8), value = varint();
      if (field === NEW_SESSION) runs.started = ++events;
      if (field === SCRIPT_FINISHED && value !== FINISHED_EARLY_FOR_RERUN) runs.ended = ++events;
      if (field > 2) return; // preceded by the hash and the metadata
      if (tag % 8 === 2) at += value;
    }
  }

  const Socket = window.WebSocket;
  window.WebSocket = class extends Socket {
    constructor(...args) {
      super(...args);
      this.addEventListener("message", ({ data }) => {
        if (data instanceof ArrayBuffer) readMessage(new Uint8Array(data));
      });
    }
    send(data) {
      if (data[0] === RERUN) runs.requested = ++events;
      super.send(data);
    }
  };

  const observer = new MutationObserver((records) => (changes += records.length));
  const watch = (root) => observer.observe(root, {
    subtree: true, childList: true, attributes: true, characterData: true,
  });
  watch(document);
  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (options) {
    const root = attach.call(this, options);
    watch(root);
    return root;
  };

  const isOffline = location.protocol === "file:"; // a downloaded page has no server
  const hasRunEnded = () =>
    isOffline ||
    (0 < runs.requested && runs.requested < runs.started && runs.started < runs.ended);
  const isIdle = () =>
    isOffline ||
    document.querySelector("[data-testid=stApp]")?.dataset.testScriptState === "notRunning";

  // a widget shows a skeleton until its script has loaded
  const isComplete = () => !document.querySelector("[data-testid=stSkeleton]");
  // ignore endless animations, which are spinners
  const isStill = () =>
    !document.getAnimations().some(({ playState, effect }) =>
      playState === "running" && effect?.getComputedTiming().iterations !== Infinity);

  // Streamlit's error dialog, such as "Connection error"
  const dialogText = () => document.querySelector("[data-testid=stDialog]")?.innerText ?? "";

  const isOver = () => hasRunEnded() && isIdle() && isComplete();
  const frame = () => new Promise(requestAnimationFrame);
  const moment = () => new Promise((done) => setTimeout(done, 30));

  // Resolves once every requested run has ended and some frames have passed without a change, which
  // takes longer on a busy machine. While a run is in progress no frames are requested, because
  // painting them would slow down the server.
  window.settled = async (patience) => {
    const end = performance.now() + patience;
    for (let quiet = 0; quiet < QUIET_FRAMES; ) {
      const changesBefore = changes, wasOver = isOver();
      await (wasOver ? frame() : moment());
      quiet = wasOver && isOver() && isStill() && changes === changesBefore ? quiet + 1 : 0;
      if (performance.now() > end)
        throw new Error(`not settled: ${JSON.stringify(runs)} ${dialogText()}`);
    }
  };
})();
