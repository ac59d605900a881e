import assert from "node:assert/strict";
import test from "node:test";
import { elements, shared } from "./shared_scripts.js";

const { SvgContext } = shared("SvgContext");
const drawing = () => new SvgContext(200, 100, "#ffffff");
const attributes = (element, ...names) => names.map((name) => element.getAttribute(name));

test("text stays text, whatever it contains", () => {
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

test("font, position and alignment are kept", () => {
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

test("paths are transformed when they're drawn, and line width by the mean of both scales", () => {
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

test("clipped content is in a group with its clip path until the state is restored", () => {
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
