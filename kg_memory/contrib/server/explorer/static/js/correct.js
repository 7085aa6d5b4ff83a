// The form that corrects a fact: its dates, or a replacement. Episodes stay as they are; a statement by the user is added.

import { post, read } from "./api.js";
import { typed } from "./dates.js";
import { buttons, element, field, openDialog, toast } from "./dom.js";
import { wordsOf } from "./graph.js";
import { t } from "./i18n.js";
import { dropForgotten } from "./live.js";
import { look } from "./looking.js";
import { openFact } from "./pieces.js";
import { act, setUndo } from "./review.js";

export function openCorrect(fact) {
  openDialog(t("correct"), (form, close) => {
    const object = element("input", { type: "text", value: fact.objects.join(", ") });
    const from = element("input", { type: "text", value: typed(fact.valid_at, fact.precision), placeholder: "2024-05" });
    const until = element("input", { type: "text", value: typed(fact.invalid_at, fact.end_precision), placeholder: t("still so") });
    form.append(element("p", {}, fact.sentence), element("p.soft.small", {}, t("correct intro")), field(`${fact.subject} ${wordsOf(fact.predicate)}`, object), field(t("began"), from), field(t("ended on?"), until),
      buttons(close, t("cancel"), element("button.primary", { type: "submit" }, t("save"))));
    form.addEventListener("submit", () => act(async () => {
      const objects = object.value === fact.objects.join(", ") ? fact.objects : object.value.split(",").map((name) => name.trim()).filter(Boolean);
      const same = objects === fact.objects;
      const added = await post("facts", {
        subject: fact.subject, predicate: fact.predicate, object: objects.length === 0 ? null : objects.length === 1 ? objects[0] : objects, ...typeOf(fact),
        ...(same ? { sentence: fact.sentence } : {}), ...(from.value ? { valid_at: from.value } : {}), ...(until.value ? { invalid_at: until.value } : {}), source: "explorer",
      });
      const back = () => undo(fact, added.episode);
      setUndo(back);
      toast(t(same && !(await stands(fact, from.value, until.value)) ? "dates stand" : "corrected"), { label: `${t("undo")} (u)`, run: back });
      if (!same) await openStated(fact, added.episode);
    }));
  });
}

// Return the type of the fact's objects, for the object that takes their place.
function typeOf(fact) {
  const { graph } = look;
  const [first] = graph.facts.object[graph.factPlace.get(fact.id)] ?? [];
  return first === undefined ? {} : { object_type: graph.types[graph.entityType[first]] };
}

// Open the fact that a message about the same subject states.
async function openStated({ subject }, episode) {
  const { items } = await read("facts", { about: subject, limit: 100 });
  const stated = items.find((one) => one.sources.some((source) => source.episode === episode));
  if (stated) openFact(stated.id);
}

// Forget the statement of a correction: what it ended holds again.
function undo(fact, episode) {
  openFact(fact.id); // before the other one is gone
  return act(async () => {
    const { plan } = await post("forget", { episode });
    const { receipt } = await post("forget", { episode, confirm: plan });
    dropForgotten(receipt);
    setUndo(null);
    toast(t("undone"));
  });
}

// Return whether the fact now has the entered dates: earlier statements can outweigh them.
async function stands(fact, from, until) {
  const now = await read(`facts/${encodeURIComponent(fact.id)}`);
  return [[from, now.valid_at], [until, now.invalid_at]].every(([typed, stored]) => !/^\d{4}(-\d\d){0,2}$/.test(typed) || stored?.startsWith(typed));
}
