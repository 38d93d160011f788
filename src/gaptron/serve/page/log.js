// The log: counts and export.

import { hasKey, request } from "./api.js";
import { button, h, note, patch, snippet } from "./dom.js";
import { plural } from "./format.js";
import { baseUrl, curlKey } from "./start.js";

export const title = "Log";
const FILES = [["log?format=jsonl", "jsonl", "Decisions with outcomes, JSON lines", "for gaptron evaluate"], ["log?format=dsjson", "dsjson", "Decisions with outcomes, dsjson", "for Vowpal Wabbit"], ["snapshot", "gaptron", "The learner as a model file", "for Learner.load"]];

export function view(root, model, path) {
  const summary = h("p"), message = h("p", { role: "status" });
  const download = async (file, name) => {
    message.textContent = `Reading ${name}.`;
    try {
      const url = URL.createObjectURL(await (await request(file)).blob());
      h("a", { href: url, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
      message.textContent = `${name} is complete.`;
    } catch (problem) {
      message.textContent = `${name} could not be read: ${problem.message}.`;
    }
  };
  root.append(h("h2", "Log"), note("Every decision and outcome is in the log; the model is a function of it. An export has the decisions whose outcome was learned from, with propensities."), summary,
    h("ul", FILES.map(([file, ending, what, use]) => h("li", hasKey() // a link cannot send a key
      ? button(what, () => download(`${path}/${file}`, `${model.name}.${ending}`), { class: "link" })
      : h("a", { href: `${path}/${file}`, download: `${model.name}.${ending}` }, what), ` (${use})`))), message,
    snippet("In a shell", `curl${curlKey()} '${baseUrl()}/${path}/log?format=jsonl' > ${model.name}.jsonl
gaptron evaluate ${model.name}.jsonl`));
  return async (info) => patch(summary, `${plural(info.decisions, "decision")}; ${plural(info.learned, "outcome")} learned from.`);
}
