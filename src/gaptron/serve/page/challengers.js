// Other algorithms that learn from the same events without deciding, compared with the model.

import { call } from "./api.js";
import { estimate } from "./chart.js";
import { button, explained, field, h, nameField, named, note, patch } from "./dom.js";
import { DASH, interval, measure, plural, signed, time } from "./format.js";

export const title = "Challengers";
const TEXT = { better: "better than the model", worse: "worse than the model", unknown: "not decided yet" };

const points = (share) => (share === null ? DASH : `${signed((100 * share).toFixed(1), share)} points`);

export function view(root, model, path) {
  const message = h("p", { role: "status" }), body = h("div");
  const form = h("form", { onsubmit: (event) => { event.preventDefault(); add(); } }, h("h3", "Add a challenger"),
    nameField(),
    field("Algorithm", "A name that gaptron algorithms lists.", h("input", { type: "text", name: "algorithm", required: true, autocomplete: "off", spellcheck: "false" })),
    field("Settings", "A JSON object; empty for the algorithm's own.", h("input", { type: "text", name: "settings", autocomplete: "off", spellcheck: "false" })),
    h("button.main", "Add"));
  root.append(h("h2", "Challengers"), note("At most five other algorithms learn from the same events. They never decide: each is evaluated on the logged decisions by their propensities, before it learns."), message, body, form);

  async function act(place, options, done) {
    try {
      await call(`${path}/${place}`, options);
      message.textContent = done;
      await refresh(model);
      return true;
    } catch (problem) {
      message.textContent = `Nothing was changed: ${problem.message}.`;
      return false;
    }
  }

  async function add() {
    const { name, algorithm, settings } = form.elements;
    let given = {};
    try {
      if (settings.value.trim()) given = JSON.parse(settings.value);
    } catch {
      return void (message.textContent = 'Settings must be a JSON object, such as {"epsilon": 0.1}.');
    }
    if (await act(`challengers/${encodeURIComponent(name.value)}`, { method: "PUT", body: { algorithm: algorithm.value, settings: given } }, `${name.value} was added.`)) form.reset();
  }

  const remove = (name) => confirm(`Remove the challenger ${name}?`) && act(`challengers/${encodeURIComponent(name)}`, { method: "DELETE" }, `${name} was removed.`);
  const promote = (name) => confirm(`Let ${name} decide from now on? The log keeps the change.`) && act("promote", { method: "POST", body: { challenger: name } }, `${name} decides now.`);

  async function refresh(info) {
    const { challengers = [] } = await call(`${path}/challengers`), rewards = info.actions;
    patch(body, challengers.length === 0 ? h("p", "There is no challenger yet.") :
      challengers.map((one) => h("section.tile", { "data-key": one.name },
        h("div.row.apart", h("h3", named(one.name)), h("div.row", button("Promote", () => promote(one.name), { "aria-label": `Promote ${one.name}` }), button("Remove", () => remove(one.name), { "aria-label": `Remove ${one.name}` }))),
        h("p", `${one.algorithm} `, h("code", JSON.stringify(one.settings)), `, ${plural(one.decisions, "decision")} with outcome since ${time(one.since)}`),
        h("div.bars", h("div.name", "challenger"), estimate(one, rewards, measure(rewards)), h("small", interval(one, rewards)), h("div.name", "model"), estimate(one.live, rewards, measure(rewards)), h("small", interval(one.live, rewards))),
        h("p", "Difference: ", explained(points(one.difference.error_rate), "Its error rate minus that of the model in the same decisions; below zero it is better."), `, ${points(one.difference.low)} to ${points(one.difference.high)}`),
        one.stopped ? h("p.warning", `Stopped: ${one.stopped}`) : h("p", { class: one.comparison === "better" ? "good" : "note" }, (TEXT[one.comparison] ?? TEXT.unknown) + (one.decisions_needed ? `: about ${plural(one.decisions_needed, "more decision")} needed` : "")))));
  }
  return refresh;
}
