// The page reads a model's report once a second. Nothing is loaded from elsewhere.
"use strict";

const EVERY = 1000; // ms
const at = (id) => document.getElementById(id);
const percent = (share) => (share === null || share === undefined ? "–" : `${(100 * share).toFixed(1)} %`);
const span = (s) => (s < 60 ? `${s} s` : s < 3600 ? `${s / 60} min` : s < 86400 ? `${s / 3600} h` : `${s / 86400} d`);
const count = (number) => number.toLocaleString("en");
let key = sessionStorage.getItem("key") || "";

async function read(path) {
  const response = await fetch(path, { headers: key ? { Authorization: `Bearer ${key}` } : {} });
  at("key-form").hidden = response.status !== 401 && response.status !== 403;
  if (!response.ok) throw new Error((await response.json()).detail);
  return response.json();
}

function write(id, text) {
  if (at(id).textContent !== text) at(id).textContent = text; // or a screen reader would say it again and again
}

function table(id, heads, rows) {
  const line = (cells, kind) => {
    const row = document.createElement("tr");
    cells.forEach((cell, place) => {
      const made = document.createElement(kind);
      made.textContent = cell;
      if (place) made.className = "number";
      row.append(made);
    });
    return row;
  };
  const head = document.createElement("thead");
  head.append(line(heads, "th"));
  const body = document.createElement("tbody");
  body.append(...rows.map((row) => line(row, "td")));
  at(id).replaceChildren(head, body);
}

function list(id, texts) {
  at(id).replaceChildren(...texts.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
}

function shape(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [word, value] of Object.entries(attributes)) made.setAttribute(word, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function figure(id, width, height, words, shapes) {
  const made = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words });
  made.append(...shapes);
  at(id).replaceChildren(made);
}

function room(id) {
  return Math.max(280, Math.min(720, at(id).clientWidth)); // so that letters keep their size on a narrow screen
}

function drawCurve(recent) {
  if (!recent) return at("curve").replaceChildren("Too few answers yet.");
  const [W, H, L, R, T, B] = [room("curve"), 220, 45, 10, 10, 25];
  const x = (i) => L + ((W - L - R) * (i + 0.5)) / recent.curve.length;
  const y = (share) => H - B - (H - T - B) * share;
  const shapes = [0, 0.25, 0.5, 0.75, 1].flatMap((share) => [
    shape("line", { class: "axis", x1: L, x2: W - R, y1: y(share), y2: y(share) }),
    shape("text", { x: L - 6, y: y(share) + 4, "text-anchor": "end" }, `${100 * share} %`),
  ]);
  const points = recent.curve.map((one, i) => [x(i), y(one.wrong)]);
  const band = [...recent.curve.map((one, i) => [x(i), y(one.high)]), ...recent.curve.map((one, i) => [x(i), y(one.low)]).reverse()];
  shapes.push(shape("polygon", { class: "band", points: band.join(" ") }));
  shapes.push(shape("polyline", { class: "curve", points: points.join(" ") }));
  shapes.push(shape("text", { x: W - R, y: H - 6, "text-anchor": "end" }, `the last ${count(recent.answers)} answered`));
  figure("curve", W, H, `Share of mistakes: ${percent(recent.wrong)}, between ${percent(recent.low)} and ${percent(recent.high)}`, shapes);
}

function drawAlways(always, recent) {
  table("always-table", ["label", "wrong", "at least", "at most"],
    always.map((one) => [one.label, percent(one.wrong), percent(one.low), percent(one.high)]));
  if (!always.length || !recent) return at("always").replaceChildren(always.length ? "" : "Nothing can be estimated yet.");
  const [W, L, R, H] = [room("always"), 130, 20, 24];
  const x = (share) => L + (W - L - R) * Math.min(1, Math.max(0, share));
  const shapes = always.flatMap((one, i) => [
    shape("text", { x: L - 8, y: H * i + 17, "text-anchor": "end" }, one.label.length > 16 ? `${one.label.slice(0, 15)}…` : one.label),
    shape("line", { class: "bar", x1: x(one.low), x2: x(one.high), y1: H * i + 13, y2: H * i + 13 }),
    shape("circle", { class: "dot", cx: x(one.wrong), cy: H * i + 13, r: 4 }),
  ]);
  const end = H * always.length;
  shapes.push(shape("line", { class: "ours", x1: x(recent.wrong), x2: x(recent.wrong), y1: 0, y2: end }));
  shapes.push(shape("text", { x: x(recent.wrong), y: end + 14, "text-anchor": "middle" }, `ours ${percent(recent.wrong)}`));
  figure("always", W, end + 20, "Mistakes of always playing one label; the table below has the numbers", shapes);
}

let before = null;

function show(report) {
  at("report").hidden = false;
  write("sentence", report.sentence);
  list("warnings", report.warnings);
  drawCurve(report.recent);
  drawAlways(report.always, report.recent);
  table("labels", ["label", "played", "share", "answered", "wrong"],
    report.labels.map((one) => [one.label, count(one.played), percent(one.share), percent(one.answered), percent(one.wrong)]));
  const pupil = ["agreed", "apprenticed"];
  table("counts", ["what", "how many"], Object.entries(report.counts)
    .filter(([word]) => report.mode === "apprentice" || !pupil.includes(word)).map(([word, number]) => [word, count(number)]));
  table("delays", ["up to", "answers"], report.delays.map((one) => [one.upto === null ? "longer" : span(one.upto), count(one.answers)]));
  write("exploration", report.exploration === null ? "Nothing was drawn yet." :
    `${percent(report.exploration)} of the last draws' probability lies outside their most likely label.`);
  at("heard").hidden = !Object.keys(report.heard).length;
  table("heard", ["who is heard", "weight"], Object.entries(report.heard).map(([name, weight]) => [name, weight.toFixed(3)]));
  write("certificate", report.certificate);
  const speed = report.speed;
  const rate = before ? (speed.entries - before.entries) / Math.max(0.001, speed.seconds - before.seconds) : 0;
  write("speed", `${rate.toFixed(0)} log entries a second; ${count(speed.commits)} commits, ` +
    `${speed.commit_ms === null ? "–" : speed.commit_ms.toFixed(1)} ms and ${speed.batch === null ? "–" : speed.batch.toFixed(1)} entries each; ` +
    `${count(speed.waiting)} entries wait for the disk; half of the requests took at most ${speed.p50_ms ?? "–"} ms, 99 of 100 at most ${speed.p99_ms ?? "–"} ms.`);
  before = speed;
  list("changes", report.changes.length ? report.changes.map((one) => `${one.at.slice(0, 19).replace("T", " ")} UTC: ${one.what}`) : ["None."]);
}

async function models() {
  const names = (await read("v1/models")).models.map((model) => model.name);
  const chosen = at("model").value || decodeURIComponent(location.hash.slice(1));
  if ([...at("model").options].map((one) => one.value).join() !== names.join()) {
    at("model").replaceChildren(...names.map((name) => new Option(name, name, false, name === chosen)));
  }
  return at("model").value;
}

async function update() {
  try {
    const name = await models();
    if (name) show(await read(`v1/models/${name}/report`));
    else write("sentence", "There is no model yet: POST /v1/models makes one.");
  } catch (problem) {
    write("sentence", `The service does not answer: ${problem.message}`);
  }
  setTimeout(update, EVERY);
}

at("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  key = at("key").value.trim();
  sessionStorage.setItem("key", key);
});
at("model").addEventListener("change", () => {
  location.hash = at("model").value;
  before = null;
});
update();
