// How a model does: a few large numbers, the error rate or reward over time, labels, delays and experts.

import { call } from "./api.js";
import { ceiling, histogram, lineChart, linesChart, meter, range, widthOf } from "./chart.js";
import { button, explained, h, named, note, patch, section, table } from "./dom.js";
import { count, DASH, interval, measure, percent, plural, rate, shown, signed, span, time, value } from "./format.js";
import { snippetsOf } from "./start.js";

export const title = "Overview";
const EVERY = 10; // updates between two readings of the history
const MAX_SHOWN = 20, MAX_SAMPLES = 300;

export function view(root, model, path) {
  const summary = h("p", { id: "summary", "aria-live": "polite" }), body = h("div");
  const samples = []; // weights of the experts since the page was opened
  let [updates, period, histories, previous] = [0, "", {}, null];
  root.append(summary, body);
  return async function refresh(info) {
    const report = await call(`${path}/report`);
    if (updates++ % EVERY === 0) {
      for (const step of ["hour", "day"]) histories[step] = await call(`${path}/history?step=${step}`);
      if (!period) period = histories.hour.points.filter((one) => one.outcomes).length >= 3 ? "hour" : "recent";
    }
    samples.push(report.expert_weights);
    if (samples.length === 1) samples.push(report.expert_weights); // a line needs two points
    samples.splice(0, samples.length - MAX_SAMPLES);
    if (summary.textContent !== report.summary) summary.textContent = report.summary;
    const choose = (step) => { period = step; refresh(info); };
    const width = widthOf(body), half = width > 880 ? Math.floor((width - 32) / 2) : width;
    patch(body,
      report.warnings.map((one) => h("p.warning", one)),
      h("div.tiles", tiles(report, info)),
      report.counts.decisions === 0 && snippetsOf(info),
      curve(report, histories, period, choose, width),
      choices(report, info),
      h("div.columns", delays(report, half), experts(report, samples, half)),
      section("Changes", null, report.changes.length === 0 ? h("p", "None.") : h("ol", report.changes.map((one) => h("li", `${time(one.at)}: ${one.what}`)))),
      counts(report), technical(report, previous));
    previous = report.speed;
  };
}

// --- large numbers ------------------------------------------------------------------------------------------------

const NONE = "not enough outcomes yet";
const tile = (name, help, large, ...small) => h("section.tile", h("h3", name), h("div.large", explained(large, help)), h("p", h("small", small)));

function tiles(report, info) {
  const rewards = report.has_actions, tally = report.counts, name = measure(rewards);
  const arrived = tally.outcomes + (tally.waiting ?? 0), { shadow, total } = report;
  const played = shadow ? shadow.played : total, learned = shadow ? shadow.outcomes : total?.outcomes;
  const found = [
    tile("Decisions", "How many decisions were made since the model was created.", count(tally.decisions), tally.imported ? `and ${count(tally.imported)} imported` : "in the log"),
    tile(shadow ? `${name} of the caller` : name, rewards ? "The average reward of what was played, from 0 to 1, over the whole log, with a 95 % confidence interval." : "The share of what was played that was wrong, over the whole log, with a 95 % confidence interval.",
      rate(played?.error_rate, rewards), learned ? `${interval(played, rewards)}; ${plural(learned, "outcome")}` : NONE),
    tile("With feedback", "The share of decisions whose outcome has arrived, whether it is learned already or waits for the timeout.",
      tally.decisions ? percent(arrived / tally.decisions) : DASH, tally.decisions ? `${count(arrived)} of ${plural(tally.decisions, "decision")}` : "no decisions yet"),
  ];
  if (shadow) {
    return [...found, tile("Agreement", "How often the model would have played what the caller played.", percent(shadow.agreement), "shadow mode: the caller plays its own choice"),
      tile(`${name} in its place`, "What the model would have had if its choices had been played, estimated by the caller's propensities.", rate(shadow.error_rate, rewards), shadow.hidden ?? (shadow.error_rate === null ? NONE : interval(shadow, rewards))),
      uplift("Against the caller", "How much better the model would have been than what the caller played.", shadow, played, rewards, "by the caller's propensities")];
  }
  const best = report.single_label.reduce((least, one) => (one.hidden || least?.error_rate <= one.error_rate ? least : one), null);
  if (!rewards) {
    found.push(uplift("Against the best fixed label", "How much less often the model is wrong than always playing the label with the lowest estimate; the interval combines both intervals.", played, best, rewards,
      best ? ["always ", named(shown(info, best.label))] : NONE, report.single_label[0]));
  }
  return [...found, uplift("Against uniform draws", "How much better the model is than drawing uniformly, estimated by inverse propensity; the uniform draws of epsilon make it precise.", played, report.uniform, rewards,
    report.uniform ? `uniform: ${rate(report.uniform.error_rate, rewards)}` : NONE, report.uniform)];
}

function uplift(name, help, ours, other, rewards, small, estimate) {
  if (!Number.isFinite(ours?.error_rate) || !Number.isFinite(other?.error_rate)) {
    return estimate?.hidden ? tile(name, `Not shown: ${estimate.hidden}.`, DASH, "too uncertain yet") : tile(name, help, DASH, small);
  }
  const text = (difference) => signed(rewards ? difference.toFixed(3) : (100 * difference).toFixed(1), difference);
  return tile(name, help, `${text(other.error_rate - ours.error_rate)}${rewards ? "" : " points"}`,
    small, `; ${text(other.low - ours.high)} to ${text(other.high - ours.low)}`, other.low < ours.high && other.high > ours.low && ", not certain yet");
}

// --- over time ----------------------------------------------------------------------------------------------------

const STEPS = { recent: "Last outcomes", hour: "Hours", day: "Days" };
const SIZE = { hour: 3600e6, day: 86400e6 }; // µs

function curve(report, histories, period, choose, width) {
  const rewards = report.has_actions, name = measure(rewards), recent = period === "recent";
  const points = recent ? recentPoints(report.recent, rewards) : historyPoints(histories[period].points, period, rewards);
  const known = points.filter(Boolean), [first, last] = [known[0], known.at(-1)];
  const ends = first === last ? [first] : [first, last];
  const marks = recent || !known.length ? [] : report.changes.map((one, at) => [Date.parse(one.at) * 1000, String(at + 1), `${time(one.at)}: ${one.what}`])
    .filter(([at]) => at >= first.x && at <= last.x + SIZE[period]);
  const top = rewards ? 1 : ceiling(known.map((one) => one.high));
  return section(`${name} over time`, ["The band is a 95 % confidence interval of each point.", !recent && " An outcome counts when its decision was made.", known.length > 0 && top < 1 && ` The axis ends at ${percent(top)}.`, marks.length > 0 && " Dashed lines are the changes listed below."],
    h("div.row", { role: "group", "aria-label": "Period" }, Object.keys(STEPS).map((step) => button(STEPS[step], () => choose(step), { "aria-pressed": String(step === period) }))),
    h("div", { id: "curve" }, known.length === 0 ? h("p", "Not enough outcomes yet.") : lineChart({
      width, points, marks, top, format: (share) => (rewards ? share.toFixed(2) : `${+(100 * share).toFixed(1)} %`),
      ticks: recent ? [] : ends.map((one) => [one.x, one.name]), note: recent ? `the last ${plural(report.recent.outcomes, "outcome")}, oldest on the left` : `UTC, one point per ${period}`,
      description: `${name} over time; the table below has the numbers`,
    })),
    known.length > 0 && h("details", { "data-key": "table" }, h("summary", "Show as a table"), table(`${name} over time`,
      ["Period", [name, "Of the outcomes in the period.", "number"], ["95 % interval", null, "number"], ["Outcomes", "That were learned from in the period.", "number"]],
      known.map((one) => [one.name, one.text, one.between, count(one.outcomes)]))));
}

function pointOf(one, rewards, x, name) {
  const [text, between] = [rate(one.error_rate, rewards), interval(one, rewards)];
  const [low, high] = [value(one.low, rewards), value(one.high, rewards)].sort((a, b) => a - b);
  return { x, value: value(one.error_rate, rewards), low, high, name, text, between, outcomes: one.outcomes, help: `${name}: ${text} (${between})` };
}

function recentPoints(recent, rewards) {
  const end = (at) => Math.round((recent.outcomes * at) / recent.curve.length);
  return (recent?.curve ?? []).map((one, at) => pointOf({ ...one, outcomes: end(at + 1) - end(at) }, rewards, at, `outcomes ${count(end(at) + 1)} to ${count(end(at + 1))} of the last ${count(recent.outcomes)}`));
}

function historyPoints(history, step, rewards) {
  const points = [];
  for (const one of history.filter((point) => point.outcomes)) {
    if (points.length && one.start - points.at(-1).x > 1.5 * SIZE[step]) points.push(null); // a gap
    points.push(pointOf(one, rewards, one.start, new Date(one.start / 1000).toISOString().slice(0, step === "hour" ? 16 : 10).replace("T", " ")));
  }
  return points;
}

// --- labels, delays, experts --------------------------------------------------------------------------------------

function choices(report, info) {
  const rewards = report.has_actions, name = measure(rewards), always = Object.fromEntries(report.single_label.map((one) => [one.label, one]));
  const what = rewards ? "Action" : "Label", rows = rewards ? report.actions : [...report.labels].sort((a, b) => b.share - a.share);
  const estimate = (one) => (!one ? h("small", "not estimated") : one.hidden ? explained("too uncertain", one.hidden) :
    range({ ...one, value: one.error_rate }, percent(one.error_rate), `Always playing this label: wrong in ${percent(one.error_rate)}, proven to be in ${interval(one)}.`, report.total?.error_rate));
  const line = (one) => {
    const id = rewards ? one.action : one.label, wrong = rewards ? one.mean_reward : one.error_rate;
    return [h("div.name", named(shown(info, id)), info.retired?.includes(id) && h("small", " retired")),
      meter(one.share, percent(one.share), `Played in ${plural(one.played, "decision")}; ${percent(one.outcome_rate)} of them have an outcome, ${count(one.timed_out ?? 0)} timed out.`),
      meter(wrong, wrong === null ? DASH : rewards ? wrong.toFixed(3) : percent(wrong), `${name} when this ${what.toLowerCase()} was played.`), !rewards && estimate(always[id])];
  };
  return section(rewards ? "Most played actions" : "Labels", rewards ? null : "Always playing it is estimated from the same decisions by inverse propensity weighting; the bar is a proven 95 % interval, the dashed line the model. All lines go from 0 to 100 %.",
    rows.length === 0 ? h("p", "Nothing was played yet.") : h("div", { class: rewards ? "bars" : "bars three", id: "labels" },
      [h("div.head.name", what), ["Share", name, !rewards && "Always playing it"].map((text) => text && h("div.head", text))], rows.slice(0, MAX_SHOWN).map(line)),
    rows.length > MAX_SHOWN && note(`The ${MAX_SHOWN} most played of ${count(rows.length)}.`));
}

function delays(report, width) {
  const items = report.delays.map((one, at) => {
    const before = at > 0 ? span(report.delays[at - 1].up_to) : "", name = one.up_to === null ? "more" : span(one.up_to);
    return { name, number: one.outcomes, help: `${plural(one.outcomes, "outcome")} arrived after ${before || "0 s"}${one.up_to === null ? " or later" : ` to ${span(one.up_to)}`}.` };
  });
  return section("Delay of outcomes", "How long outcomes took to arrive: each column up to the time below it. The periods are not equally long.",
    items.some((one) => one.number) ? histogram({ width, items, description: `Delay of outcomes: ${items.map((one) => `${one.name} ${one.number}`).join(", ")}` }) : h("p", "No outcome was learned from yet."));
}

function experts(report, samples, width) {
  const weights = Object.entries(report.expert_weights);
  return weights.length > 0 && section("Weights of the experts", "Which of the experts inside the algorithm the model follows. They sum to 1.", linesChart({
    width, series: weights.map(([name]) => [name, samples.map((one) => one[name] ?? 0)]), top: 1, format: (weight) => weight.toFixed(2), note: "since you opened this page",
    description: `Weights of the experts: ${weights.map(([name, weight]) => `${name} ${weight.toFixed(3)}`).join(", ")}`,
  }));
}

// --- the rest -----------------------------------------------------------------------------------------------------

const COUNTS = {
  decisions: "Decisions that were made.", outcomes: "Outcomes that arrived and were learned from.", waiting: "Outcomes that arrived and are learned at their timeout.", pending: "Decisions that are learned from at their timeout.",
  late: "Outcomes after the timeout.", void: "Decisions without an outcome that means anything.", overridden: "The caller played something else.", timed_out: "Decisions learned as wrong because no outcome arrived.",
  unusable: "Decisions with a propensity that cannot be learned from.", agreed: "The caller played what the model would have played.", shadow: "Decisions in shadow mode.", imported: "Decisions imported from another log.",
  duplicates: "Outcomes that were sent again, since the start.", conflicts: "Outcomes that contradicted an earlier one, since the start.", refused: "Refused requests, since the start.", retries: "Decisions requested again, since the start.",
};

const counts = (report) => h("details", { "data-key": "counts" }, h("summary", "All counts"), table("Counts", ["Kind", ["Count", null, "number"]],
  Object.entries(report.counts).filter(([kind]) => report.mode === "shadow" || !["agreed", "shadow"].includes(kind)).map(([kind, number]) => [explained(kind.replaceAll("_", " "), COUNTS[kind] ?? kind), count(number)])));

function technical(report, previous) {
  const speed = report.speed;
  const events = previous ? (speed.events - previous.events) / Math.max(0.001, speed.seconds - previous.seconds) : 0;
  return h("details", { "data-key": "technical" }, h("summary", "Exploration, certificate and performance"),
    h("p", report.exploration === null ? "No decisions yet." : `In recent decisions, ${report.has_actions ? "actions" : "labels"} other than the most likely one had a probability of ${percent(report.exploration)} on average.`),
    h("p", `Algorithm: ${report.algorithm}. ${report.certificate}`),
    h("p", `${events.toFixed(0)} events per second; ${count(speed.commits)} commits with ${speed.events_per_commit?.toFixed(1) ?? DASH} events and ${speed.commit_ms?.toFixed(1) ?? DASH} ms each; ${count(speed.uncommitted)} events not on disk yet; ` +
      `response time: median at most ${speed.p50_ms ?? DASH} ms, 99th percentile at most ${speed.p99_ms ?? DASH} ms.`));
}
