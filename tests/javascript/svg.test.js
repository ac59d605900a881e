import assert from "node:assert/strict";
import test from "node:test";
import { elements, shared } from "./shared_scripts.js";

const { SvgContext } = shared("SvgContext");
const drawing = () => new SvgContext(200, 100, "#ffffff");
const attributes = (element, ...names) => names.map((name) => element.getAttribute(name));

test("a document has its size and its background", () => {
  const text = drawing().text();
  const [svg] = elements(text, "svg");
  assert.deepEqual(attributes(svg, "width", "height", "viewBox"), ["200", "100", "0 0 200 100"]);
  const [background] = elements(text, "rect");
  assert.deepEqual(attributes(background, "width", "fill"), ["100%", "#ffffff"]);
});

test("text stays text, whatever it holds", () => {
  const labels = ["</text><script>alert(1)</script>", "a & b", "]]>", "שלום", "'\"", "  two"];
  const context = drawing();
  for (const label of labels) context.fillText(label, 1, 2);
  context.fillText("a\x08b\nc\ud800", 1, 2);
  const text = context.text();
  assert.equal(elements(text, "script").length, 0);
  assert.deepEqual(
    elements(text, "text").map((element) => element.textContent),
    [...labels, "a\ufffdb c\ufffd"],
  );
});

test("font, place and alignment are written down", () => {
  const context = drawing();
  context.font = "bold 13px sans-serif";
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.fillStyle = "#0072b2";
  context.fillText("x", 10, 20);
  const [element] = elements(context.text(), "text");
  const names = ["x", "y", "font-size", "font-weight", "font-family", "text-anchor", "fill"];
  assert.deepEqual(
    attributes(element, ...names),
    ["10", "24", "13", "bold", "sans-serif", "end", "#0072b2"], // 4 from the middle to the base line
  );
});

test("paths are transformed when they are drawn, their width by the mean of both directions", () => {
  const context = drawing();
  context.translate(10, 20);
  context.scale(2, 8);
  context.lineWidth = 3;
  context.setLineDash([1, 2]);
  context.beginPath();
  context.moveTo(1, 1);
  context.lineTo(5, 2);
  context.stroke();
  const [path] = elements(context.text(), "path");
  const names = ["d", "stroke-width", "stroke-dasharray", "fill"];
  assert.deepEqual(attributes(path, ...names), ["M12 28L20 36", "12", "4 8", "none"]);
});

test("a turn is a quarter of a circle", () => {
  const context = drawing();
  context.translate(50, 60);
  context.rotate(-Math.PI / 2);
  context.fillText("up", 0, 0);
  const [element] = elements(context.text(), "text");
  assert.equal(element.getAttribute("transform"), "matrix(0 -1 1 0 50 60)");
});

test("restore brings back what save kept, and nothing more than that", () => {
  const context = drawing();
  context.fillStyle = "#0072b2";
  context.save();
  context.fillStyle = "#d55e00";
  context.translate(5, 5);
  context.restore();
  context.restore(); // one too many, as on a canvas
  context.fillRect(1, 2, 3, 4);
  const rect = elements(context.text(), "rect")[1];
  assert.deepEqual(attributes(rect, "x", "fill", "transform"), ["1", "#0072b2", null]);
});

test("opacity of a colour and of all are two things", () => {
  const context = drawing();
  context.globalAlpha = 0.25;
  context.fillStyle = "rgba(1, 2, 3, 0.5)";
  context.fillRect(0, 0, 1, 1);
  context.fillRect(0, 0, 0, 1); // nothing to see
  const rects = elements(context.text(), "rect").slice(1);
  assert.equal(rects.length, 1);
  assert.deepEqual(attributes(rects[0], "fill", "fill-opacity", "opacity"), [
    "#010203",
    "0.5",
    "0.25",
  ]);
});

test("what is cut lies in a group with its path, until it is restored", () => {
  const context = drawing();
  context.save();
  context.beginPath();
  context.rect(0, 0, 10, 10);
  context.clip();
  context.fillRect(0, 0, 50, 50);
  context.restore();
  context.fillRect(0, 0, 60, 60);
  const text = context.text();
  const [shape] = elements(text, "clipPath");
  const [, cut, free] = elements(text, "rect");
  assert.equal(shape.firstChild.getAttribute("d"), "M0 0L10 0L10 10L0 10Z");
  assert.equal(cut.parentNode.getAttribute("clip-path"), `url(#${shape.getAttribute("id")})`);
  assert.equal(free.parentNode.getAttribute("clip-path"), null);
});

test("a full turn of an arc is four curves that end where they began", () => {
  const context = drawing();
  context.beginPath();
  context.arc(50, 50, 10, 0, 2 * Math.PI);
  context.fill();
  const d = elements(context.text(), "path")[0].getAttribute("d");
  assert.equal(d.split("C").length, 5);
  assert.match(d, /^M60 50C.* 60 50$/);
});

test("a rectangle drawn at once leaves the path alone", () => {
  const context = drawing();
  context.beginPath();
  context.moveTo(1, 1);
  context.strokeRect(5, 5, 2, 2);
  context.lineTo(2, 2);
  context.stroke();
  const paths = elements(context.text(), "path").map((path) => path.getAttribute("d"));
  assert.deepEqual(paths, ["M5 5L7 5L7 7L5 7Z", "M1 1L2 2"]);
});
