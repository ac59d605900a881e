// @ts-check
// The palette of all canvases: colors that color-blind people can tell apart, in the light and the dark
// theme. The Python charts use the same colors (ui/charts/style.py).

/** @typedef {[number, number, number]} Rgb red, green and blue from 0 to 255 */

// Okabe and Ito's colors, in the order in which identities use them.
const OKABE_ITO = {
  blue: "#0072b2",
  orange: "#e69f00",
  green: "#009e73",
  purple: "#cc79a7",
  sky: "#56b4e9",
  vermillion: "#d55e00",
  yellow: "#f0e442",
};

// Colors of quantities, used on every page: Okabe and Ito's hues, made lighter or darker until each has
// a contrast of 3:1 on both backgrounds and differs from its neighbors, also for color-blind people.
// Heads use HEAD_COLOURS. The scales below show magnitude, not identity.
/** @type {Record<string, string>} */
const QUANTITIES = {
  queries: "#9e4a8a",
  keys: "#009e73",
  values: "#c94a00",
  positions: "#3a93c4",
  stream: "#5f6872", // the residual stream is gray, because the others add to it
  attention: "#0072b2", // the output of attention
  "feed-forward": "#c88400", // the output of the feed-forward network
};

// Attention weights, from zero to the largest: viridis at nine points (matplotlib, CC0).
/** @type {Rgb[]} */
const STOPS = [
  [68, 1, 84],
  [72, 40, 120],
  [62, 74, 137],
  [49, 104, 142],
  [38, 130, 142],
  [31, 158, 137],
  [53, 183, 121],
  [144, 215, 67],
  [253, 231, 37],
];

// Signed numbers: blue below zero, nearly white at zero, orange above; darker is further from zero.
/** @type {Rgb[]} */
const DIVERGING_STOPS = [
  [0, 50, 100],
  [20, 110, 170],
  [130, 185, 222],
  [246, 246, 246],
  [242, 176, 104],
  [196, 98, 10],
  [120, 44, 0],
];

// The same for the dark theme: nearly black at zero, and brighter is further from zero.
/** @type {Rgb[]} */
const DIVERGING_ON_DARK = [
  [160, 215, 255],
  [64, 156, 222],
  [32, 88, 134],
  [28, 33, 40],
  [132, 76, 30],
  [216, 126, 34],
  [255, 196, 120],
];

// For lines and marks of up to 12 heads, with a contrast of at least 3:1 on both backgrounds. Okabe and
// Ito's colors come first. Each of the others is as different from all before it as the contrast allows,
// also for color-blind people. Twelve colors can't all be very different, so always show the head's name.
const HEAD_COLOURS = [
  "#0072b2",
  "#d55e00",
  "#009e73",
  "#c46a9b",
  "#6090fc",
  "#b43c24",
  "#84546c",
  "#cc0ca8",
  "#489ccc",
  "#3048fc",
  "#fc5460",
  "#3c78e4",
];

/** @type {(from: Rgb, to: Rgb, share: number) => Rgb} */
function mix(from, to, share) {
  const channel = (/** @type {0 | 1 | 2} */ i) => Math.round(from[i] + (to[i] - from[i]) * share);
  return [channel(0), channel(1), channel(2)];
}

/** @type {(colour: Rgb) => string} */
const css = (colour) => `rgb(${colour.join(" ")})`;

/**
 * Parse a color: #rrggbb, or a computed style such as "rgb(1, 2, 3)".
 * @type {(text: string) => Rgb}
 */
function rgb(text) {
  const parts = text.startsWith("#")
    ? [1, 3, 5].map((at) => Number.parseInt(text.slice(at, at + 2), 16))
    : (text.match(/[\d.]+/g) ?? []).map(Number);
  return parts.length < 3 ? [128, 128, 128] : [parts[0], parts[1], parts[2]];
}

/** @type {(colour: Rgb) => boolean} */
const bright = ([r, g, b]) => 0.299 * r + 0.587 * g + 0.114 * b > 140;

/** @type {(stops: Rgb[], share: number) => Rgb} */
function interpolate(stops, share) {
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  return mix(stops[low], stops[low + 1], place - low);
}

// The color of a weight from 0 to 1, as three numbers.
/** @type {(share: number) => Rgb} */
function colourNumbers(share) {
  return interpolate(STOPS, share);
}

// The color of a weight from 0 to 1, as CSS.
/** @type {(share: number) => string} */
function colour(share) {
  return css(colourNumbers(share));
}

// The color of a signed number from -1 to 1. `dark`: for the dark theme.
/** @type {(share: number, dark: boolean) => Rgb} */
function divergingNumbers(share, dark) {
  return interpolate(dark ? DIVERGING_ON_DARK : DIVERGING_STOPS, (share + 1) / 2);
}

/** @type {(share: number, dark?: boolean) => string} */
function diverging(share, dark = false) {
  return css(divergingNumbers(share, dark));
}

// Black or white, whichever has more contrast with a color (always at least 4.5:1).
/** @type {(colour: Rgb) => string} */
function readable(colour) {
  const [r, g, b] = colour.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}

/** @type {(index: number) => string} */
function headColour(index) {
  return HEAD_COLOURS[index % HEAD_COLOURS.length];
}

// The color of one of `rows` identities. `place` from 0 to 1 goes from slightly darker to much lighter.
/** @type {(row: number, rows: number, place: number) => Rgb} */
function identityColour(row, rows, place) {
  const hues = Object.values(OKABE_ITO);
  if (rows > hues.length) return hsl((row / rows) * 330, 0.6, 0.42 + 0.34 * place);
  const hue = rgb(hues[row]);
  return place < 0.3
    ? mix(hue, [0, 0, 0], 0.3 - place)
    : mix(hue, [255, 255, 255], 0.9 * (place - 0.3));
}

/** @type {(hue: number, saturation: number, light: number) => Rgb} */
function hsl(hue, saturation, light) {
  const a = saturation * Math.min(light, 1 - light);
  const channel = (/** @type {number} */ n) => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (light - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [channel(0), channel(8), channel(4)];
}
