// Runs in every page that a test opens, before the page's own scripts: what the page has asked of
// the server, what the server has answered, and whether anything was painted since.
(() => {
  const RERUN = (11 << 3) | 2; // first byte of a message that asks for a run: field 11
  const NEW_SESSION = 4, SCRIPT_FINISHED = 6, FINISHED_EARLY_FOR_RERUN = 2;
  const QUIET_FRAMES = 5;
  // the numbers of the last events: a run was asked for, has begun, has ended
  const runs = { asked: 0, begun: 0, ended: 0 };
  let events = 0, changes = 0;

  // Fields of a message of the server, as far as the first that says what the message is.
  function hear(bytes) {
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
      if (field === NEW_SESSION) runs.begun = ++events;
      if (field === SCRIPT_FINISHED && value !== FINISHED_EARLY_FOR_RERUN) runs.ended = ++events;
      if (field > 2) return; // the hash and the metadata come before it
      if (tag % 8 === 2) at += value;
    }
  }

  const Socket = window.WebSocket;
  window.WebSocket = class extends Socket {
    constructor(...given) {
      super(...given);
      this.addEventListener("message", ({ data }) => {
        if (data instanceof ArrayBuffer) hear(new Uint8Array(data));
      });
    }
    send(data) {
      if (data[0] === RERUN) runs.asked = ++events;
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

  const saved = location.protocol === "file:"; // a page for offline use asks no server
  const answered = () =>
    saved || (0 < runs.asked && runs.asked < runs.begun && runs.begun < runs.ended);
  const resting = () =>
    saved || document.querySelector("[data-testid=stApp]")?.dataset.testScriptState === "notRunning";

  // a widget whose script is still on its way shows its place
  const complete = () => !document.querySelector("[data-testid=stSkeleton]");
  // what opens or fades is still moving; what turns for ever only says that something is awaited
  const still = () =>
    !document.getAnimations().some(({ playState, effect }) =>
      playState === "running" && effect?.getComputedTiming().iterations !== Infinity);

  // what Streamlit says where it has given up, as "Connection error"
  const said = () => document.querySelector("[data-testid=stDialog]")?.innerText ?? "";

  const over = () => answered() && resting() && complete();
  const frame = () => new Promise(requestAnimationFrame);
  const moment = () => new Promise((done) => setTimeout(done, 30));

  // Resolves once every run asked for has ended and some frames have passed without a change. A
  // busy machine shows fewer frames, so that it is given more time. While a run goes on, no frame is
  // asked for: painting it would slow the server that is waited for.
  window.settled = async (patience) => {
    const end = performance.now() + patience;
    for (let quiet = 0; quiet < QUIET_FRAMES; ) {
      const before = changes, wasOver = over();
      await (wasOver ? frame() : moment());
      quiet = wasOver && over() && still() && changes === before ? quiet + 1 : 0;
      if (performance.now() > end) throw new Error(`not settled: ${JSON.stringify(runs)} ${said()}`);
    }
  };
})();
