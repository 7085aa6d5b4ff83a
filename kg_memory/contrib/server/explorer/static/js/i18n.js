// The page's texts in English and Chinese. Stored texts are never translated.

import { ENGLISH } from "./words-en.js";
import { CHINESE } from "./words-zh.js";

const WORDS = { en: ENGLISH, zh: CHINESE };
const KEPT = "kg-memory language";

export const language = {
  current: choose(),
  set(name) {
    localStorage.setItem(KEPT, name);
    location.reload();
  },
};

function choose() {
  const kept = localStorage.getItem(KEPT);
  if (kept in WORDS) return kept;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

export function t(name, values = {}) {
  const text = WORDS[language.current][name] ?? ENGLISH[name] ?? name;
  return text.replace(/\{(\w+)\}/g, (_, key) => String(values[key] ?? ""));
}

// Return "3 facts" or "1 fact". The word has both forms, separated by |.
export function count(name, number) {
  const [one, many] = t(name).split("|");
  return `${number.toLocaleString(language.current)} ${number === 1 || !many ? one : many}`;
}

document.documentElement.lang = language.current;
