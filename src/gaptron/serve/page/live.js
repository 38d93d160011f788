// The latest decisions, as they are made.

import { call } from "./api.js";
import { meter } from "./chart.js";
import { button, choose, explained, h, named, note, patch, table } from "./dom.js";
import { clock, DASH, pairs, plural, probability, shown, time } from "./format.js";

export const title = "Live";
const LIMIT = 50;
const MAX_BARS = 50;

export const STATUS = {
  open: "no outcome yet", waiting: "arrived; learned at the timeout", learned: "learned", void: "void: nothing was learned", overridden: "something else was played: nothing was learned",
  late: "too late to be learned from", expired: "no outcome within the timeout", "timed-out": "no outcome: learned as wrong",
};

export function outcomeText(outcome) {
  if (!outcome) return DASH;
  if (outcome.void) return "void";
  if (outcome.correct !== undefined) return outcome.correct ? "right" : "wrong";
  return outcome.reward !== undefined ? `reward ${outcome.reward}` : `it was ${outcome.label ?? outcome.action}`;
}

export const distributionOf = (one) => (one.ranking ? one.ranking.map(({ id, propensity }) => [id, propensity]) : Object.entries(one.distribution ?? {}).sort((a, b) => b[1] - a[1]));

export function distribution(info, entries, played) {
  return h("div.bars", h("div.head.name", info.actions ? "Action" : "Label"), h("div.head", "Probability"), h("div"),
    entries.slice(0, MAX_BARS).map(([name, p]) => [h("div.name", named(shown(info, name))), meter(p, probability(p), "The probability with which it is drawn."), h("div", name === played ? "played" : "")]),
    entries.length > MAX_BARS && note(`and ${plural(entries.length - MAX_BARS, "more")}`));
}

export function view(root, model, path) {
  let [paused, opened, info, decisions] = [false, null, model, null];
  const status = h("p.note", { role: "status" }), detail = h("section", { id: "opened" }), rows = h("div");
  const pause = button("Pause", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Continue" : "Pause";
  }, { "aria-pressed": "false" });
  const label = h("select", { onchange: reload, "aria-label": "Label" });
  const outcome = choose({ onchange: reload, "aria-label": "Outcome" }, [["", "with or without outcome"], ["true", "with outcome"], ["false", "without outcome"]]);
  const text = h("input", { type: "search", "aria-label": "Search in the features and ids", placeholder: "Search features and ids", oninput: draw });
  root.append(h("h2", "Latest decisions"), h("div.row", pause, label, outcome, text), status, detail, rows);

  async function reload() {
    const query = new URLSearchParams({ limit: LIMIT });
    if (label.value) query.set("label", label.value);
    if (outcome.value) query.set("has_outcome", outcome.value);
    decisions = await call(`${path}/decisions?${query}`);
    if (opened) opened = decisions.decisions.find((one) => one.event_id === opened.event_id) ?? opened;
    draw();
  }

  function open(one) {
    opened = one;
    draw();
    detail.querySelector("h3")?.focus();
  }

  function draw() {
    const wanted = text.value.toLowerCase();
    const found = decisions.decisions.filter((one) => `${one.event_id} ${JSON.stringify(featuresOf(one))}`.toLowerCase().includes(wanted));
    status.textContent = `${paused ? "Paused. " : ""}${plural(found.length, "decision")}, newest first${decisions.complete === false ? "; only the latest 20,000 were searched" : ""}.`;
    patch(detail, opened && details(info, opened, () => { opened = null; draw(); }));
    patch(rows, found.length === 0 ? h("p", decisions.decisions.length ? "Nothing matches the search." : "No decisions yet, or none that match.") : table("Latest decisions",
      [["Time", "When it was decided, UTC.", "short"], ["Event", "Your id of the event; opens its distribution and history.", "text"], [info.actions ? "Action" : "Label", "What was played.", "text"],
        ["Propensity", "The probability with which it was drawn.", "number"], ["Feedback", "Its outcome, and what became of it.", "short"], ["Features", null, "text"]],
      found.map((one) => [clock(one.at), button(one.event_id, () => open(one), { class: "link" }), h("bdi.clip", shown(info, one.label ?? one.action)), probability(one.propensity),
        explained(outcomeText(one.outcome), `${STATUS[one.status]}.`), h("bdi.clip", one.redacted ? "removed" : pairs(featuresOf(one)) || DASH)])));
  }

  return async (fresh) => {
    info = fresh;
    label.hidden = info.actions;
    const value = label.value;
    patch(label, h("option", { value: "" }, "all labels"), info.labels?.map((one) => h("option", { value: one }, shown(info, one))));
    label.value = value;
    if (!paused || decisions === null) await reload();
  };
}

const featuresOf = (one) => one.features ?? (one.x?.indices ? Object.fromEntries(one.x.indices.map((at, place) => [at, one.x.values[place]])) : one.x) ?? one.context;

function details(info, one, close) {
  const history = [[one.at, `decided: ${shown(info, one.label ?? one.action)} with propensity ${probability(one.propensity)}, after ${plural(one.version, "learned outcome")}`]];
  if (one.shadow_label ?? one.shadow_action) history.push([one.at, `the model in its place: ${shown(info, one.shadow_label ?? one.shadow_action)}`]);
  if (one.outcome_at) history.push([one.outcome_at, `outcome: ${outcomeText(one.outcome)}`]);
  if (one.feedback_due) history.push([one.feedback_due, "end of the timeout"]);
  const features = featuresOf(one) ?? {};
  return h("div.tile", h("div.row.apart", h("h3", { tabindex: -1 }, `Event ${one.event_id}`), button("Close", close)),
    h("div", { class: "columns" },
      h("div", h("h3", "What it was drawn from"), distributionOf(one).length ? distribution(info, distributionOf(one), one.label ?? one.action) : h("p", "In shadow mode the caller draws.")),
      h("div", h("h3", "History"), h("ul.plain", history.sort((a, b) => (a[0] < b[0] ? -1 : 1)).map(([at, what]) => h("li", h("small", time(at)), " ", h("bdi", what))), h("li", `Now: ${STATUS[one.status]}.`)),
        h("h3", "Features"), one.redacted ? h("p", "They were removed from the log.") : table("Features", [["Name", null, "text"], ["Value", null, "text"]], Object.entries(features).map(([name, value]) => [named(name), named(String(value ?? DASH))])),
        one.actions?.map((action) => h("p", named(action.id), ": ", h("bdi", pairs(action.features ?? action.x) || DASH))))));
}
