// What Python packs for the canvases: a length (4 bytes, little endian), a JSON header, and a body.

// The header's fields, and the body's bytes as `body`.
function unpack(data) {
  const bytes = data.slice(); // a copy of its own: aligned, and not a view of a larger buffer
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  return { ...header, body: bytes.subarray(4 + length) };
}

// The same with the body as float32 `values`; its start must be a multiple of four bytes.
function unpackFloats(data) {
  const { body, ...header } = unpack(data);
  return { ...header, values: new Float32Array(body.buffer, body.byteOffset) };
}

// A label cut to the room that a canvas has for it.
function shorten(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let kept = [...text];
  while (kept.length > 1 && context.measureText(kept.join("") + "…").width > room) kept.pop();
  return kept.join("") + "…";
}
