// How a model does for each value of its features.

import { call } from "./api.js";
import { estimate } from "./chart.js";
import { explained, h, named, note, patch } from "./dom.js";
import { count, measure, plural } from "./format.js";

export const title = "Segments";
const EVERY = 5;

export function view(root, model, path) {
  let updates = 0;
  const body = h("div");
  root.append(h("h2", "Segments"), note("Features with at most 20 values. Each line goes from 0 to 1, the bar is a 95 % confidence interval; with many segments, one in twenty misses the true value by chance."), body);
  return async (info) => {
    if (updates++ % EVERY) return;
    const { segments } = await call(`${path}/segments`), rewards = info.actions;
    patch(body, segments.length === 0 ? h("p", "Nothing yet: segments appear when decisions have named features that are words, true or false.") :
      segments.map((segment) => h("section", { "data-key": `${segment.of_action ? "action" : "context"} ${segment.feature}` }, h("h3", named(segment.feature), segment.of_action && " of the action played"),
        h("div.bars", h("div.head.name", "Value"), h("div.head", measure(rewards)), h("div.head", explained("Decisions", "How many decisions had this value, and how many of them were learned from.")),
          segment.values.map((one) => [h("div.name", named(String(one.value))), estimate(one, rewards, `${measure(rewards)} of ${plural(one.outcomes, "outcome")}`),
            h("div", `${count(one.decisions)}, ${count(one.outcomes)} with outcome`)])))));
  };
}
