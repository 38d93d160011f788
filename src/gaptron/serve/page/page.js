// The page fetches the report of a model once a second. It loads nothing from other hosts.
"use strict";

const INTERVAL = 1000; // ms
const element = (id) => document.getElementById(id);
const percent = (share) => (share === null || share === undefined ? "–" : `${(100 * share).toFixed(1)} %`);
const span = (s) => (s < 60 ? `${s} s` : s < 3600 ? `${s / 60} min` : s < 86400 ? `${s / 3600} h` : `${s / 86400} d`);
const count = (number) => number.toLocaleString("en");
let key = sessionStorage.getItem("key") || "";

async function fetchJson(path) {
  const response = await fetch(path, { headers: key ? { Authorization: `Bearer ${key}` } : {} });
  element("key-form").hidden = response.status !== 401 && response.status !== 403;
  if (!response.ok) throw new Error((await response.json()).detail);
  return response.json();
}

function write(id, text) {
  if (element(id).textContent !== text) element(id).textContent = text; // otherwise screen readers would repeat it every second
}

function table(id, headings, rows) {
  const line = (texts, tag) => {
    const row = document.createElement("tr");
    texts.forEach((text, column) => {
      const cell = document.createElement(tag);
      cell.textContent = text;
      if (column) cell.className = "number";
      row.append(cell);
    });
    return row;
  };
  const head = document.createElement("thead");
  head.append(line(headings, "th"));
  const body = document.createElement("tbody");
  body.append(...rows.map((row) => line(row, "td")));
  element(id).replaceChildren(head, body);
}

function list(id, texts) {
  element(id).replaceChildren(...texts.map((text) => Object.assign(document.createElement("li"), { textContent: text })));
}

function shape(name, attributes, text) {
  const created = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [attribute, value] of Object.entries(attributes)) created.setAttribute(attribute, value);
  if (text !== undefined) created.textContent = text;
  return created;
}

function figure(id, width, height, description, shapes) {
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": description });
  svg.append(...shapes);
  element(id).replaceChildren(svg);
}

function figureWidth(id) {
  return Math.max(280, Math.min(720, element(id).clientWidth)); // so that text keeps its size on a narrow screen
}

function measure(rewards) {
  return rewards ? "Mean reward" : "Error rate";
}

function point(one, rewards) {
  if (rewards) return { value: 1 - one.error_rate, low: 1 - one.high, high: 1 - one.low };
  return { value: one.error_rate, low: one.low, high: one.high };
}

function drawCurve(recent, rewards) {
  if (!recent) return element("curve").replaceChildren("Not enough outcomes yet.");
  const [W, H, L, R, T, B] = [figureWidth("curve"), 220, 45, 10, 10, 25];
  const x = (i) => L + ((W - L - R) * (i + 0.5)) / recent.curve.length;
  const y = (share) => H - B - (H - T - B) * share;
  const shapes = [0, 0.25, 0.5, 0.75, 1].flatMap((share) => [
    shape("line", { class: "axis", x1: L, x2: W - R, y1: y(share), y2: y(share) }),
    shape("text", { x: L - 6, y: y(share) + 4, "text-anchor": "end" }, `${100 * share} %`),
  ]);
  const curve = recent.curve.map((one) => point(one, rewards));
  const points = curve.map((one, i) => [x(i), y(one.value)]);
  const band = [...curve.map((one, i) => [x(i), y(one.high)]), ...curve.map((one, i) => [x(i), y(one.low)]).reverse()];
  const whole = point(recent, rewards);
  shapes.push(shape("polygon", { class: "band", points: band.join(" ") }));
  shapes.push(shape("polyline", { class: "curve", points: points.join(" ") }));
  shapes.push(shape("text", { x: W - R, y: H - 6, "text-anchor": "end" }, `the last ${count(recent.outcomes)} outcomes`));
  figure("curve", W, H, `${measure(rewards)}: ${percent(whole.value)}, between ${percent(whole.low)} and ${percent(whole.high)}`, shapes);
}

function drawSingleLabel(estimates, recent) {
  table("single-label-table", ["label", "error rate", "at least", "at most", ""],
    estimates.map((one) => [one.label, percent(one.error_rate), percent(one.low), percent(one.high), one.hidden ? `not shown: ${one.hidden}` : ""]));
  estimates = estimates.filter((one) => !one.hidden);
  if (!estimates.length || !recent) return element("single-label").replaceChildren(estimates.length ? "" : "Not enough outcomes yet.");
  const [W, L, R, H] = [figureWidth("single-label"), 130, 20, 24];
  const x = (share) => L + (W - L - R) * Math.min(1, Math.max(0, share));
  const shapes = estimates.flatMap((one, i) => [
    shape("text", { x: L - 8, y: H * i + 17, "text-anchor": "end" }, one.label.length > 16 ? `${one.label.slice(0, 15)}…` : one.label),
    shape("line", { class: "bar", x1: x(one.low), x2: x(one.high), y1: H * i + 13, y2: H * i + 13 }),
    shape("circle", { class: "dot", cx: x(one.error_rate), cy: H * i + 13, r: 4 }),
  ]);
  const end = H * estimates.length;
  shapes.push(shape("line", { class: "live", x1: x(recent.error_rate), x2: x(recent.error_rate), y1: 0, y2: end }));
  shapes.push(shape("text", { x: x(recent.error_rate), y: end + 14, "text-anchor": "middle" }, `live ${percent(recent.error_rate)}`));
  figure("single-label", W, end + 20, "Error rates of always playing one label; the table below has the numbers", shapes);
}

let previous = null; // the speed in the last report

function show(report) {
  element("report").hidden = false;
  write("summary", report.summary);
  list("warnings", report.warnings);
  write("curve-title", measure(report.has_actions));
  write("curve-measure", measure(report.has_actions));
  drawCurve(report.recent, report.has_actions);
  element("single-label-section").hidden = report.has_actions;
  drawSingleLabel(report.single_label, report.recent);
  write("labels-title", report.has_actions ? "Most played actions" : "Labels");
  if (report.has_actions) {
    table("labels", ["action", "played", "share", "with outcome", "mean reward"],
      report.actions.map((one) => [one.action, count(one.played), percent(one.share), percent(one.outcome_rate), percent(one.mean_reward)]));
  } else {
    table("labels", ["label", "played", "share", "with outcome", "error rate"],
      report.labels.map((one) => [one.label, count(one.played), percent(one.share), percent(one.outcome_rate), percent(one.error_rate)]));
  }
  const shadowCounts = ["agreed", "shadow"];
  table("counts", ["kind", "count"], Object.entries(report.counts)
    .filter(([kind]) => report.mode === "shadow" || !shadowCounts.includes(kind))
    .map(([kind, number]) => [kind.replace("_", " "), count(number)]));
  table("delays", ["up to", "outcomes"], report.delays.map((one) => [one.up_to === null ? "longer" : span(one.up_to), count(one.outcomes)]));
  write("exploration", report.exploration === null ? "No decisions yet." :
    `In recent decisions, ${report.has_actions ? "actions" : "labels"} other than the most likely one had a probability of ${percent(report.exploration)} on average.`);
  element("expert-weights").hidden = !Object.keys(report.expert_weights).length;
  table("expert-weights", ["expert", "weight"], Object.entries(report.expert_weights).map(([name, weight]) => [name, weight.toFixed(3)]));
  write("certificate", report.certificate);
  const speed = report.speed;
  const rate = previous ? (speed.events - previous.events) / Math.max(0.001, speed.seconds - previous.seconds) : 0;
  write("speed", `${rate.toFixed(0)} events per second; ${count(speed.commits)} commits with ` +
    `${speed.events_per_commit === null ? "–" : speed.events_per_commit.toFixed(1)} events and ${speed.commit_ms === null ? "–" : speed.commit_ms.toFixed(1)} ms each; ` +
    `${count(speed.uncommitted)} events not on disk yet; response time: median at most ${speed.p50_ms ?? "–"} ms, 99th percentile at most ${speed.p99_ms ?? "–"} ms.`);
  previous = speed;
  list("changes", report.changes.length ? report.changes.map((one) => `${one.at.slice(0, 19).replace("T", " ")} UTC: ${one.what}`) : ["None."]);
}

async function selectedModel() {
  const { models, quarantined = [] } = await fetchJson("v1/models");
  const names = [...models, ...quarantined].map((model) => model.name);
  list("quarantined", quarantined.map((model) => `The model ${model.name} is quarantined: ${model.reason}`));
  const selected = element("model").value || decodeURIComponent(location.hash.slice(1));
  if ([...element("model").options].map((one) => one.value).join() !== names.join()) {
    element("model").replaceChildren(...names.map((name) => new Option(name, name, false, name === selected)));
  }
  return element("model").value;
}

async function update() {
  try {
    const name = await selectedModel();
    if (name) show(await fetchJson(`v1/models/${name}/report`));
    else write("summary", "There is no model yet: create one with POST /v1/models.");
  } catch (problem) {
    element("report").hidden = true; // what it shows may be old
    write("summary", `The service is not available: ${problem.message}`);
  }
  setTimeout(update, INTERVAL);
}

element("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  key = element("key").value.trim();
  sessionStorage.setItem("key", key);
});
element("model").addEventListener("change", () => {
  location.hash = element("model").value;
  previous = null;
});
update();
