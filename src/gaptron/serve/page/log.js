// The log: counts and export.

import { hasKey, modelPath, request } from "./api.js";
import { h, patch, section, snippet } from "./dom.js";
import { plural } from "./format.js";

export const title = "Log";
const FILES = [["log?format=jsonl", "jsonl", "Decisions with outcomes, JSON lines", "for gaptron evaluate"], ["log?format=dsjson", "dsjson", "Decisions with outcomes, dsjson", "for Vowpal Wabbit"], ["snapshot", "gaptron", "The learner as a model file", "for Learner.load"]];

export function view(root, model) {
  const summary = h("p"), message = h("p", { role: "status" });
  const download = async (path, name) => {
    message.textContent = `Reading ${name}.`;
    try {
      const url = URL.createObjectURL(await (await request(path)).blob());
      h("a", { href: url, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
      message.textContent = `${name} is complete.`;
    } catch (problem) {
      message.textContent = `${name} could not be read: ${problem.message}.`;
    }
  };
  const base = location.href.split("#")[0].replace(/\/$/, "");
  root.append(h("h2", {}, "Log"), h("p", { class: "note" }, "Every decision and outcome is in the log; the model is a function of it. An export has the decisions whose outcome was learned from, with propensities."), summary,
    h("ul", {}, FILES.map(([path, ending, what, use]) => h("li", {}, hasKey() // a link cannot send a key
      ? h("button", { class: "link", type: "button", onclick: () => download(`${modelPath(model.name)}/${path}`, `${model.name}.${ending}`) }, what)
      : h("a", { href: `${modelPath(model.name)}/${path}`, download: `${model.name}.${ending}` }, what), ` (${use})`))), message,
    snippet("In a shell", `curl ${hasKey() ? '-H "Authorization: Bearer $GAPTRON_KEY" ' : ""}'${base}/${modelPath(model.name)}/log?format=jsonl' > ${model.name}.jsonl
gaptron evaluate ${model.name}.jsonl`));
  return async (info) => patch(summary, `${plural(info.decisions, "decision")}; ${plural(info.learned, "outcome")} learned from.`);
}
