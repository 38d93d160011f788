// Figures as SVG. Error rates and rewards have axes that start at 0; every figure has a table with the same numbers.

import { explained, h, named, note, s } from "./dom.js";
import { interval, rate, value } from "./format.js";

const NICE = [0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1];
const LEFT = 52, RIGHT = 14, TOP = 18, BOTTOM = 34;

export const widthOf = (element) => Math.max(260, Math.min(1080, element.clientWidth || 600)); // text keeps its size

export function ceiling(values) {
  const most = Math.max(0, ...values.filter(Number.isFinite));
  return NICE.find((one) => one >= most) ?? Math.ceil(most);
}

// points: {x, value, low, high, help}, a null among them is a gap; ticks: [x, text]; marks: [x, name, help].
export function lineChart({ width, height = 240, description, points, ticks, marks = [], format, top, note }) {
  const known = points.filter(Boolean), xs = known.map((one) => one.x);
  const [first, last] = [Math.min(...xs), Math.max(...xs)];
  const x = (at) => (first === last ? (LEFT + width - RIGHT) / 2 : LEFT + ((width - LEFT - RIGHT) * (at - first)) / (last - first));
  const y = (one) => height - BOTTOM - (height - TOP - BOTTOM) * Math.min(1, one / top);
  const shapes = [0, 0.25, 0.5, 0.75, 1].map((share) => [
    s("line.axis", { x1: LEFT, x2: width - RIGHT, y1: y(share * top), y2: y(share * top) }),
    s("text.soft", { x: LEFT - 6, y: y(share * top) + 4, "text-anchor": "end" }, format(share * top)),
  ]);
  for (const run of runsOf(points)) {
    const band = [...run.map((one) => [x(one.x), y(one.high)]), ...run.map((one) => [x(one.x), y(one.low)]).reverse()];
    if (run.length === 1) shapes.push(s("line.whisker", { x1: x(run[0].x), x2: x(run[0].x), y1: y(run[0].low), y2: y(run[0].high) }));
    shapes.push(s("polygon.band", { points: band.join(" ") }));
    shapes.push(s("polyline.curve", { points: run.map((one) => [x(one.x), y(one.value)]).join(" ") }));
  }
  marks.forEach(([at, name, help]) => {
    const place = Math.max(LEFT, Math.min(width - RIGHT, x(at)));
    shapes.push(s("line.mark", { x1: place, x2: place, y1: TOP, y2: height - BOTTOM }));
    shapes.push(s("text.markname", { x: place, y: TOP - 5, "text-anchor": "middle", "data-help": help }, name));
  });
  const step = (width - LEFT - RIGHT) / Math.max(1, known.length);
  known.forEach((one) => {
    if (known.length <= 60) shapes.push(s("circle.point", { cx: x(one.x), cy: y(one.value), r: 2.5 }));
    shapes.push(s("rect.hit", { x: x(one.x) - step / 2, y: TOP, width: step, height: height - TOP - BOTTOM, "data-help": one.help }));
  });
  ticks.forEach(([at, text], place) => shapes.push(s("text", {
    class: "soft", x: x(at), y: height - BOTTOM + 16, "text-anchor": place === 0 && ticks.length > 1 ? "start" : place === ticks.length - 1 && ticks.length > 1 ? "end" : "middle",
  }, text)));
  shapes.push(s("text.soft", { x: width - RIGHT, y: height - 3, "text-anchor": "end" }, note));
  return s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": description }, shapes);
}

function runsOf(points) {
  const runs = [[]];
  for (const one of points) {
    if (one) runs.at(-1).push(one);
    else runs.push([]);
  }
  return runs.filter((run) => run.length);
}

// series: [name, [values]] of the same length, drawn in colours and dashes that differ.
export function linesChart({ width, height = 180, description, series, format, top, note }) {
  const steps = Math.max(1, series[0][1].length - 1);
  const x = (at) => LEFT + ((width - LEFT - RIGHT) * at) / steps;
  const y = (one) => height - BOTTOM - (height - TOP - BOTTOM) * Math.min(1, one / top);
  const shapes = [0, 0.5, 1].map((share) => [
    s("line.axis", { x1: LEFT, x2: width - RIGHT, y1: y(share * top), y2: y(share * top) }),
    s("text.soft", { x: LEFT - 6, y: y(share * top) + 4, "text-anchor": "end" }, format(share * top)),
  ]);
  series.forEach(([, values], at) => shapes.push(s("polyline", { class: `curve tone${at % 5}`, points: values.map((one, i) => [x(i), y(one)]).join(" ") })));
  shapes.push(s("text.soft", { x: width - RIGHT, y: height - 6, "text-anchor": "end" }, note));
  const legend = h("ul.plain.row", series.map(([name, values], at) => h("li", { class: "row" },
    s("svg", { width: 28, height: 12, "aria-hidden": "true" }, s("line", { class: `curve tone${at % 5}`, x1: 0, x2: 28, y1: 6, y2: 6 })), named(name), format(values.at(-1)))));
  return h("div", s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": description }, shapes), legend);
}

// A share as a bar from 0 to 1, and as text.
export const meter = (share, text, help) => h("div", { class: "meter" },
  s("svg", { viewBox: "0 0 100 14", preserveAspectRatio: "none", "aria-hidden": "true" },
    s("rect.track", { x: 0, y: 6, width: 100, height: 2 }),
    Number.isFinite(share) && s("rect.bar", { x: 0, y: 1, width: 100 * Math.max(0, Math.min(1, share)), height: 12 })),
  explained(text, help));

// An estimate from 0 to 1 with its interval.
export function range(one, text, help, reference) {
  const at = (share) => 100 * Math.max(0, Math.min(1, share));
  const known = Number.isFinite(one?.value);
  return h("div", { class: "meter" },
    s("svg", { viewBox: "0 0 100 14", preserveAspectRatio: "none", "aria-hidden": "true" },
      s("rect.track", { x: 0, y: 6, width: 100, height: 2 }),
      known && s("rect.bar", { x: at(one.low), y: 5, width: Math.max(0.6, at(one.high) - at(one.low)), height: 4 }),
      known && s("rect.dot", { x: at(one.value) - 0.8, y: 1, width: 1.6, height: 12 }),
      Number.isFinite(reference) && s("line.mark", { x1: at(reference), x2: at(reference), y1: 0, y2: 14 })),
    explained(text, help));
}

// The error rate or reward of some decisions with its interval, and the explanation of what it is.
export function estimate(one, rewards, help) {
  const [low, high] = [value(one.low, rewards), value(one.high, rewards)].sort((a, b) => a - b);
  return range({ value: value(one.error_rate, rewards), low, high }, rate(one.error_rate, rewards), `${help}, 95 % interval ${interval(one, rewards)}.`);
}

export function sparkline(values, description) {
  if (values.length < 2) return note("Not enough outcomes for a curve yet.");
  const top = ceiling(values);
  const points = values.map((one, at) => [(100 * at) / (values.length - 1), 28 - 26 * Math.min(1, one / top)]);
  return s("svg", { viewBox: "0 0 100 30", width: "100%", height: 40, preserveAspectRatio: "none", role: "img", "aria-label": description },
    s("line.axis", { x1: 0, x2: 100, y1: 28, y2: 28, "vector-effect": "non-scaling-stroke" }),
    s("polyline.curve", { points: points.join(" "), "vector-effect": "non-scaling-stroke" }));
}

// items: {name, number, help}
export function histogram({ width, height = 170, description, items }) {
  const most = Math.max(1, ...items.map((one) => one.number)), step = (width - 16) / items.length;
  const y = (number) => height - 22 - ((height - 44) * number) / most;
  return s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": description }, items.map((one, at) => [
    s("rect.bar", { x: 8 + step * at + 3, y: y(one.number), width: Math.max(2, step - 6), height: height - 22 - y(one.number), "data-help": one.help }),
    s("text", { x: 8 + step * (at + 0.5), y: y(one.number) - 5, "text-anchor": "middle" }, one.number >= 10000 ? `${Math.round(one.number / 1000)}k` : String(one.number)),
    s("text.soft", { x: 8 + step * (at + 0.5), y: height - 6, "text-anchor": "middle" }, one.name),
  ]), s("line.axis", { x1: 8, x2: width - 8, y1: height - 22, y2: height - 22 }));
}
