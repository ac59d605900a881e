// Colours that colour-blind people can tell apart, the same in the light and the dark theme.

// Viridis at nine points (matplotlib, CC0): dark to bright.
const STOPS = [
  [68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142],
  [31, 158, 137], [53, 183, 121], [144, 215, 67], [253, 231, 37],
];

// Blue for less, nearly white for no difference, orange for more; darker is further from zero.
const DIVERGING_STOPS = [
  [0, 50, 100], [20, 110, 170], [130, 185, 222], [246, 246, 246], [242, 176, 104],
  [196, 98, 10], [120, 44, 0],
];

// For lines and marks of up to 12 heads: at least 3:1 against both backgrounds of the site. Okabe and
// Ito's come first; the others lie as far from all before them as that contrast lets them, also
// as colour-blind people see them. Twelve cannot all be far apart: name the head as well.
const HEAD_COLOURS = [
  "#0072b2", "#d55e00", "#009e73", "#c46a9b", "#6090fc", "#b43c24",
  "#84546c", "#cc0ca8", "#489ccc", "#3048fc", "#fc5460", "#3c78e4",
];

function between(stops, share) {
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  const mix = stops[low].map((v, i) => Math.round(v + (stops[low + 1][i] - v) * (place - low)));
  return `rgb(${mix[0]} ${mix[1]} ${mix[2]})`;
}

// From 0 to 1.
function colour(share) {
  return between(STOPS, share);
}

// From -1 to 1.
function diverging(share) {
  return between(DIVERGING_STOPS, (share + 1) / 2);
}

function headColour(index) {
  return HEAD_COLOURS[index % HEAD_COLOURS.length];
}
