// How a model does: a few large numbers, the error rate or reward over time, labels, delays and experts.

import { modelPath, optional, call } from "./api.js";
import { ceiling, histogram, lineChart, linesChart, meter, range, widthOf } from "./chart.js";
import { explained, h, named, patch, section, table } from "./dom.js";
import { DASH, count, interval, measure, percent, plural, rate, shown, signed, span, time, value } from "./format.js";
import { snippetsOf } from "./start.js";

export const title = "Overview";
const EVERY = 10; // updates between two readings of the history
const MAX_SHOWN = 20, MAX_SAMPLES = 300;

export function view(root, model) {
  const summary = h("p", { id: "summary", "aria-live": "polite" }), body = h("div", { id: "report" });
  const samples = []; // weights of the experts since the page was opened
  let [updates, period, histories, previous] = [0, "", {}, null];
  root.append(summary, body);
  return async function refresh(info) {
    const report = await call(`${modelPath(model.name)}/report`);
    if (updates++ % EVERY === 0) {
      for (const step of ["hour", "day"]) histories[step] = await optional(`${modelPath(model.name)}/history?step=${step}`);
      if (!period) period = (histories.hour?.points ?? []).filter((one) => one.outcomes).length >= 3 ? "hour" : "recent";
    }
    if (Object.keys(report.expert_weights).length) samples.push(report.expert_weights);
    if (samples.length > MAX_SAMPLES) samples.splice(0, samples.length - MAX_SAMPLES);
    if (summary.textContent !== report.summary) summary.textContent = report.summary;
    const choose = (step) => { period = step; refresh(info); };
    const width = widthOf(body), half = width > 880 ? Math.floor((width - 32) / 2) : width;
    patch(body,
      h("ul", { class: "plain", id: "warnings" }, report.warnings.map((one) => h("li", { class: "warning" }, one)),
        (info.notes ?? []).map((one) => h("li", { class: "note" }, one))),
      h("div", { class: "tiles" }, tiles(report)),
      report.counts.decisions === 0 && snippetsOf(info),
      curve(report, histories, period, choose, width),
      choices(report, info),
      h("div", { class: "columns" }, delays(report, half), experts(report, samples, histories, half)),
      report.has_actions || report.mode === "shadow" ? null : singleLabels(report, info),
      counts(report), technical(report, previous));
    previous = report.speed;
  };
}

// --- large numbers ------------------------------------------------------------------------------------------------

const tile = (name, help, large, small) => h("section", { class: "tile" }, h("h3", {}, name), h("div", { class: "large" }, explained(large, help)), h("p", {}, h("small", {}, small)));

// The policy as it was played: over the whole log if the service says so, otherwise over the recent outcomes.
const playedOf = (report) => (Number.isFinite(report.total?.error_rate) ? { ...report.total, of: `all ${plural(report.total.outcomes, "outcome")}` } :
  report.recent ? { ...report.recent, of: `the last ${plural(report.recent.outcomes, "outcome")}` } : null);

const NONE = "not enough outcomes yet";

function tiles(report) {
  const rewards = report.has_actions, tally = report.counts, played = playedOf(report);
  const arrived = tally.outcomes + (tally.waiting ?? 0);
  const found = [
    tile("Decisions", "How many decisions were made since the model was created.", count(tally.decisions), tally.imported ? `and ${plural(tally.imported, "imported decision")}` : "in the log"),
    tile(measure(rewards), rewards ? "The average reward of what was played, from 0 to 1, with a 95 % confidence interval." : "The share of what was played that was wrong, with a 95 % confidence interval.",
      rate(played?.error_rate, rewards), played ? `${interval(played, rewards)}; ${played.of}` : NONE),
    tile("With feedback", "The share of decisions whose outcome has arrived, whether it is learned already or waits for the timeout.",
      tally.decisions ? percent(arrived / tally.decisions) : DASH, tally.decisions ? `${count(arrived)} of ${plural(tally.decisions, "decision")}` : "no decisions yet"),
  ];
  if (report.mode === "shadow") return [...found, ...shadowTiles(report, played)];
  if (!rewards) {
    const usable = report.single_label.filter((one) => !one.hidden && Number.isFinite(one.error_rate));
    const best = usable.reduce((least, one) => (least && least.error_rate <= one.error_rate ? least : one), null);
    found.push(uplift("Against the best fixed label", "How much less often the model is wrong than always playing the one label with the lowest estimate. The interval combines both intervals.", played, best, rewards,
      best ? ["against always ", named(best.label)] : report.single_label.length ? "no fixed label has a usable estimate yet" : NONE));
  }
  if (report.uniform !== undefined) {
    found.push(uplift("Against uniform draws", "How much better the model is than drawing uniformly, estimated by inverse propensity, which the uniform draws of epsilon make precise.", played, report.uniform, rewards,
      report.uniform ? `against ${rate(report.uniform.error_rate, rewards)}` : NONE));
  }
  return found;
}

function uplift(name, help, played, other, rewards, small) {
  if (!played || !Number.isFinite(other?.error_rate)) return tile(name, help, DASH, small);
  const text = (difference) => signed(rewards ? difference.toFixed(3) : (100 * difference).toFixed(1), difference);
  const known = Number.isFinite(other.low) && Number.isFinite(played.low);
  return tile(name, help, `${text(other.error_rate - played.error_rate)}${rewards ? "" : " points"}`,
    [small, known && `; ${text(other.low - played.high)} to ${text(other.high - played.low)}`, known && other.low < played.high && other.high > played.low && ", not certain yet"]);
}

function shadowTiles(report, played) {
  const shadow = report.shadow, agreement = shadow?.agreement ?? (report.counts.shadow ? report.counts.agreed / report.counts.shadow : null), rewards = report.has_actions;
  const found = [tile("Agreement", "How often the model would have played what the caller played.", percent(agreement), "shadow mode: the caller plays its own choice")];
  if (shadow && Number.isFinite(shadow.error_rate)) {
    found.push(tile(`${measure(rewards)} in its place`, "What the model would have had if its choices had been played, estimated by the caller's propensities.", rate(shadow.error_rate, rewards), interval(shadow, rewards)));
    found.push(uplift("Against the caller", "How much better the model would have been than what the caller played.", shadow, played, rewards, "by the caller's propensities"));
  }
  return found;
}

// --- over time ----------------------------------------------------------------------------------------------------

const STEPS = { recent: "Last outcomes", hour: "Hours", day: "Days" };
const SIZE = { hour: 3600e6, day: 86400e6 }; // µs

function curve(report, histories, period, choose, width) {
  const rewards = report.has_actions, name = measure(rewards);
  const offered = Object.keys(STEPS).filter((step) => step === "recent" || histories[step]);
  const data = period === "recent" ? recentPoints(report.recent, rewards) : historyPoints(histories[period], period, rewards);
  const known = data.points.filter(Boolean);
  const marks = period === "recent" || !known.length ? [] : report.changes.map((one, at) => [Date.parse(one.at) * 1000, String(at + 1), `${time(one.at)}: ${one.what}`])
    .filter(([at]) => at >= known[0].x && at <= known.at(-1).x + SIZE[period]);
  const top = rewards ? 1 : ceiling(known.map((one) => one.high));
  return h("section", {}, h("h2", {}, `${name} over time`),
    h("p", { class: "note" }, rewards ? "" : top < 1 ? `The axis ends at ${percent(top)}. ` : "", "The band is a 95 % confidence interval of each point", marks.length ? "; dashed lines are the changes listed below." : "."),
    offered.length > 1 && h("div", { class: "row", role: "group", "aria-label": "Period" }, offered.map((step) => h("button", { type: "button", "aria-pressed": String(step === period), onclick: () => choose(step) }, STEPS[step]))),
    h("div", { id: "curve" }, known.length === 0 ? h("p", {}, "Not enough outcomes yet.") : lineChart({
      width, points: data.points, ticks: data.ticks, marks, top, note: data.note, format: (share) => (rewards ? share.toFixed(2) : `${+(100 * share).toFixed(1)} %`),
      description: `${name} over time; the table below has the numbers`,
    })),
    known.length > 0 && h("details", { "data-key": "curve-table" }, h("summary", {}, "Show as a table"), table(`${name} over time`,
      [["Period", null, ""], [name, "Of the outcomes in the period.", "number"], ["95 % interval", null, "number"], ["Outcomes", "That were learned from in the period.", "number"]],
      known.map((one) => [one.name, one.text, one.between, count(one.outcomes)]))));
}

function pointOf(one, rewards, x, name) {
  const [text, between] = [rate(one.error_rate, rewards), interval(one, rewards)];
  const [low, high] = [value(one.low, rewards), value(one.high, rewards)].sort((a, b) => a - b);
  return { x, value: value(one.error_rate, rewards), low, high, name, text, between, outcomes: one.outcomes, help: `${name}: ${text} (${between})` };
}

function recentPoints(recent, rewards) {
  if (!recent) return { points: [], ticks: [], note: "" };
  const size = recent.outcomes / recent.curve.length;
  const points = recent.curve.map((one, at) => pointOf({ ...one, outcomes: Math.round(size * (at + 1)) - Math.round(size * at) }, rewards, at, `outcomes ${count(Math.round(size * at) + 1)} to ${count(Math.round(size * (at + 1)))} of the last ${count(recent.outcomes)}`));
  return { points, ticks: points.length > 1 ? [[0, "oldest"], [points.length - 1, "newest"]] : [], note: `the last ${plural(recent.outcomes, "outcome")}` };
}

function historyPoints(history, step, rewards) {
  const points = [], size = SIZE[step];
  const name = (start) => new Date(start / 1000).toISOString().slice(0, step === "hour" ? 16 : 10).replace("T", " ");
  for (const one of history.points) {
    if (!one.outcomes || !Number.isFinite(one.error_rate)) continue;
    if (points.length && points.at(-1) && one.start - points.at(-1).x > 1.5 * size) points.push(null);
    points.push(pointOf(one, rewards, one.start, name(one.start)));
  }
  const known = points.filter(Boolean);
  const ticks = known.length === 0 ? [] : known.length === 1 ? [[known[0].x, known[0].name]] : [known[0], known.at(-1)].map((one) => [one.x, one.name]);
  return { points, ticks, note: `UTC, one point per ${step}` };
}

// --- labels, delays, experts --------------------------------------------------------------------------------------

function choices(report, info) {
  const rewards = report.has_actions, name = measure(rewards);
  const rows = (rewards ? report.actions : [...report.labels].sort((a, b) => b.share - a.share)).map((one) => ({
    ...one, id: rewards ? one.action : one.label, rate: rewards ? one.mean_reward : one.error_rate, retired: (info.retired ?? []).includes(one.label),
  }));
  const text = (one) => (one === null || one === undefined ? DASH : rewards ? one.toFixed(3) : percent(one));
  const bars = rows.slice(0, MAX_SHOWN).map((one) => [
    h("div", { class: "name" }, named(shown(info, one.id)), one.retired && h("small", {}, " retired")),
    meter(one.share, percent(one.share), `Played in ${plural(one.played, "decision")}, ${percent(one.share)} of all.`),
    meter(one.rate, text(one.rate), `${name} of the outcomes of this ${rewards ? "action" : "label"} that arrived.`),
  ]);
  const columns = [[rewards ? "Action" : "Label", null, "text"], ["Played", "Decisions for it.", "number"], ["Share", "Of all decisions.", "number"], ["With outcome", "Share of its decisions whose outcome arrived.", "number"], [name, "Of its outcomes that arrived.", "number"]];
  if (!rewards && rows.some((one) => one.timed_out !== undefined)) columns.push(["Timed out", "Decisions learned as wrong because no outcome arrived.", "number"]);
  return section(rewards ? "Most played actions" : "Labels", null, rows.length === 0 ? h("p", {}, "Nothing was played yet.") : [
    h("div", { class: "bars", id: "labels" }, h("div", { class: "head name" }, columns[0][0]), h("div", { class: "head" }, "Share"), h("div", { class: "head" }, name), bars),
    rows.length > MAX_SHOWN && h("p", { class: "note" }, `The ${MAX_SHOWN} most played of ${count(rows.length)}.`),
    h("details", { "data-key": "label-table" }, h("summary", {}, "Show as a table"), table("Labels", columns,
      rows.map((one) => [named(shown(info, one.id)), count(one.played), percent(one.share), percent(one.outcome_rate), text(one.rate), ...(columns.length > 5 ? [count(one.timed_out)] : [])])))]);
}

function delays(report, width) {
  const ends = report.delays.map((one) => one.up_to);
  const items = report.delays.map((one, at) => {
    const name = one.up_to === null ? `> ${span(ends[at - 1])}` : `≤ ${span(one.up_to)}`;
    return { name, number: one.outcomes, help: `${plural(one.outcomes, "outcome")} arrived ${one.up_to === null ? "later than" : "within"} ${span(one.up_to ?? ends[at - 1])}${at && one.up_to !== null ? `, but not within ${span(ends[at - 1])}` : ""}.` };
  });
  return section("Delay of outcomes", "How long outcomes took to arrive. The columns are not equally long periods.",
    items.some((one) => one.number) ? histogram({ width, items, description: `Delay of outcomes: ${items.map((one) => `${one.name} ${one.number}`).join(", ")}` }) : h("p", {}, "No outcome has arrived yet."));
}

function experts(report, samples, histories, width) {
  const logged = (histories.day?.points ?? []).filter((one) => one.expert_weights);
  const rows = logged.length > 1 ? logged.map((one) => one.expert_weights) : samples;
  const names = Object.keys(report.expert_weights);
  if (!names.length) return null;
  const series = names.map((name) => [name, rows.map((one) => one[name] ?? 0)]);
  return section("Weights of the experts", "Which of the experts inside the algorithm the model follows now. They sum to 1.",
    linesChart({ width, series, top: 1, format: (weight) => weight.toFixed(2), note: logged.length > 1 ? "one point per day" : "since you opened this page", description: `Weights of the experts: ${names.map((name) => `${name} ${report.expert_weights[name].toFixed(3)}`).join(", ")}` }));
}

function singleLabels(report, info) {
  const played = playedOf(report), text = (one) => (one.hidden ? "too wide" : percent(one.error_rate));
  return section("Always playing one label", "Error rates estimated from the same decisions by inverse propensity weighting. The bar is a proven interval: it covers the true value with probability at least 95 %. The dashed line is the model.",
    report.single_label.length === 0 ? h("p", {}, "Not enough outcomes yet.") :
    h("div", { class: "bars", id: "single-label" }, h("div", { class: "head name" }, "Label"), h("div", { class: "head" }, "Error rate"), h("div", { class: "head" }, "95 % interval"),
      report.single_label.map((one) => [h("div", { class: "name" }, named(shown(info, one.label))),
        range(one.hidden ? null : { ...one, value: one.error_rate }, text(one), one.hidden || "Estimated error rate of always playing this label.", played?.error_rate),
        h("div", {}, one.hidden ? h("small", {}, one.hidden) : explained(interval(one), "The true error rate is in this interval with probability at least 95 %."))])));
}

// --- the rest -----------------------------------------------------------------------------------------------------

const COUNTS = {
  decisions: "Decisions that were made.", outcomes: "Outcomes that were learned from.", waiting: "Outcomes that arrived and are learned at their timeout.", pending: "Decisions that are learned from at their timeout.",
  late: "Outcomes that arrived after the timeout; not learned from.", void: "Decisions without an outcome that means anything.", overridden: "Decisions for which the caller played something else.",
  timed_out: "Decisions learned as wrong because no outcome arrived.", unusable: "Decisions with a propensity that cannot be learned from.", agreed: "Shadow mode: the caller played what the model would have played.",
  shadow: "Decisions in shadow mode.", imported: "Decisions imported from another log.", duplicates: "Outcomes that were sent again, since the service started.", conflicts: "Outcomes that contradicted an earlier one, since the service started.",
  refused: "Requests that were refused, since the service started.", retries: "Decisions that were requested again, since the service started.",
};

function counts(report) {
  const rows = Object.entries(report.counts).filter(([kind]) => report.mode === "shadow" || !["agreed", "shadow"].includes(kind));
  return h("details", { "data-key": "counts" }, h("summary", {}, "All counts"), table("Counts", [["Kind", null, ""], ["Count", null, "number"]],
    rows.map(([kind, number]) => [explained(kind.replaceAll("_", " "), COUNTS[kind] ?? "See the reference of the report."), count(number)])));
}

function technical(report, previous) {
  const speed = report.speed;
  const events = previous ? (speed.events - previous.events) / Math.max(0.001, speed.seconds - previous.seconds) : 0;
  return [
    section("Changes", null, report.changes.length === 0 ? h("p", {}, "None.") : h("ol", { id: "changes" }, report.changes.map((one) => h("li", {}, `${time(one.at)}: ${one.what}`)))),
    h("details", { "data-key": "technical" }, h("summary", {}, "Exploration, certificate and performance"),
      h("p", {}, report.exploration === null ? "No decisions yet." : `In recent decisions, ${report.has_actions ? "actions" : "labels"} other than the most likely one had a probability of ${percent(report.exploration)} on average.`),
      h("p", {}, `Algorithm: ${report.algorithm}. ${report.certificate}`),
      h("p", {}, `${events.toFixed(0)} events per second; ${count(speed.commits)} commits with ${speed.events_per_commit?.toFixed(1) ?? DASH} events and ${speed.commit_ms?.toFixed(1) ?? DASH} ms each; ${count(speed.uncommitted)} events not on disk yet; ` +
        `response time: median at most ${speed.p50_ms ?? DASH} ms, 99th percentile at most ${speed.p99_ms ?? DASH} ms.`)),
  ];
}
