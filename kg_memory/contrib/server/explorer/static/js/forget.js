// Forgetting in two steps: show the plan of what would be deleted, then confirm it by its hash.

import { post } from "./api.js";
import { button, buttons, element, field, openDialog, toast } from "./dom.js";
import { count, t } from "./i18n.js";
import { dropForgotten } from "./live.js";
import { failure, loading, wordsOfMessage } from "./pieces.js";
import { act } from "./review.js";
import { set, state } from "./store.js";

const PARTS = [["goes", "episodes", "messages go"], ["goes", "facts", "facts go"], ["goes", "entities", "entities go"], ["returns", "restored", "facts return"], ["", "changed", "facts change"], ["", "unread", "messages read again"]];

// Add a button to a shown message that forgets the message with that id; return its element.
export function forgettable(box, episode, kind = "") {
  box.append(element("div.row", {}, button(t("forget message…"), () => openForget({ episode }, t("this message")), {}, `.link${kind}`)));
  return box;
}

export function openForget(what, name) {
  openDialog(t("forget what", { name }), (form, close) => {
    const plan = element("div.scroll", { tabIndex: 0, role: "region", "aria-label": t("what would happen") }, loading());
    const reason = element("input", { type: "text" });
    const confirm = element("button.danger", { type: "submit", disabled: true }, t("forget for good"));
    let hash = null;
    form.append(element("p.soft", {}, t("forget intro")), plan, field(t("reason for the log"), reason), buttons(close, t("cancel"), confirm));
    post("forget", what).then((answer) => {
      hash = answer.plan;
      plan.replaceChildren(...describe(answer.receipt));
      confirm.disabled = false;
      confirm.focus();
    }, (error) => plan.replaceChildren(failure(error)));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      confirm.disabled = true;
      forgetNow(form, close, { ...what, reason: reason.value, confirm: hash });
    });
  });
}

function forgetNow(form, close, body) {
  act(async () => {
    try {
      const { receipt } = await post("forget", body);
      dropForgotten(receipt);
      form.replaceChildren(...describeReceipt(receipt, close));
      form.querySelector("button")?.focus();
      const gone = [...receipt.entities, ...receipt.facts];
      if (gone.includes(state.id)) set({ view: "live", id: "" });
    } catch (error) {
      toast(error.message);
      close();
      throw error;
    }
  });
}

function describe(receipt) {
  const parts = PARTS.filter(([, name]) => receipt[name].length).map(([kind, name, words]) => element(`div.outcome.${kind || "plain"}`, { data: { part: name } },
    element("h3", {}, `${t(words)}: ${receipt[name].length}`), element("ul", {}, receipt[name].slice(0, 200).map((id) => element("li", {}, wordsOfMessage({ content: receipt.texts[id] ?? id }))))));
  return parts.length ? parts : [element("p", {}, t("nothing would go"))];
}

function describeReceipt(receipt, close) {
  const gone = [count("messages", receipt.episodes.length), count("facts", receipt.facts.length), count("entities", receipt.entities.length)].join(", ");
  return [
    element("h2", {}, t("forgotten")), element("p", {}, gone), receipt.restored.length > 0 && element("p", {}, t("facts hold again", { facts: count("facts", receipt.restored.length) })),
    element("p.soft", {}, receipt.residue.length ? t("residue", { traces: receipt.residue.length }) : receipt.searched ? t("no trace", { searched: receipt.searched.toLocaleString() }) : t("no id")),
    receipt.advice && element("p.soft", {}, receipt.advice), element("p.faint.small", {}, `${t("receipt")} ${receipt.receipt}`),
    element("div.buttons", {}, button(t("close"), close, {}, ".primary")),
  ].filter(Boolean);
}
