// Format times by their precision, in UTC as the memory stores them.

import { language, t } from "./i18n.js";

export const FAR = 8640000000000000;
export const DAY = 86400000;
const YEAR = 366 * DAY;

export function isOpen(time) {
  return time === null || time === undefined || time >= FAR || time <= -FAR;
}

const FORMS = {
  year: { year: "numeric" },
  month: { year: "numeric", month: "short" },
  season: { year: "numeric", month: "short" },
  day: { year: "numeric", month: "short", day: "numeric" },
  minute: { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
  clock: { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" },
};
const formats = new Map();

function format(form, time) {
  if (!formats.has(form)) formats.set(form, new Intl.DateTimeFormat(language.current === "zh" ? "zh-CN" : "en-GB", { ...FORMS[form], timeZone: "UTC" }));
  return formats.get(form).format(time);
}

export function showTime(time, precision = "instant") {
  if (isOpen(time)) return "";
  const at = typeof time === "string" ? Date.parse(time) : time;
  const day = format("day", at);
  switch (precision) {
    case "year": return format("year", at);
    case "month": case "season": return format("month", at);
    case "week": case "weekend": return t(`${precision} of`, { day });
    case "about": return t("about", { day: format("year", at) });
    case "by": return t("by", { day });
    case "day": return day;
    default: return at % DAY === 0 ? day : format("minute", at);
  }
}

export const showDay = (time) => (isOpen(time) ? "" : format("day", time));
export const showMinute = (time) => (isOpen(time) ? "" : format("minute", typeof time === "string" ? Date.parse(time) : time));
export const showClock = (time) => format("clock", time);

// Return the period of a fact from the API: "since May 2024", "Jan 2023 to Sep 2024".
export function showPeriod(fact) {
  const start = showTime(fact.valid_at, fact.precision);
  const end = showTime(fact.invalid_at, fact.end_precision);
  if (fact.kind !== "state" && start && !end) return start;
  if (start && end) return t("from to", { start, end });
  if (end) return t("until", { end });
  if (start) return t("since", { start });
  return fact.known_from ? t("said on", { day: showDay(Date.parse(fact.known_from)) }) : t("undated");
}

// Return the period of a belief from the columns, which lack the precision.
export function showSpan(from, until, known) {
  const start = isOpen(from) ? "" : showDay(from);
  const end = isOpen(until) ? "" : showDay(until);
  if (start && end) return t("from to", { start, end });
  if (end) return t("until", { end });
  if (start) return t("since", { start });
  return isOpen(known) ? t("undated") : t("said on", { day: showDay(known) });
}

// Return a time for an input field, shortened to its precision.
export function toInput(time) {
  const text = new Date(1000 * Math.ceil(time / 1000)).toISOString(); // not before what was known at that time
  if (time % DAY === 0) return text.slice(0, 10);
  return text.slice(0, time % 60000 ? 19 : 16).replace("T", " ");
}

// Return a time of a fact from the API for an input field, as precise as it is.
export function typed(time, precision) {
  return time?.slice(0, { year: 4, month: 7 }[precision] ?? 10) ?? "";
}

// Parse a typed date; return null for words, which the server must parse.
export function fromInput(text) {
  const form = /^(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?(?:[ T](\d{1,2}):(\d{2})(?::(\d{2}))?)?$/.exec(text.trim());
  if (!form) return null;
  const [year, month, day, hour, minute, second] = form.slice(1).map((part) => (part === undefined ? undefined : Number(part)));
  const time = Date.UTC(year, (month ?? 1) - 1, day ?? 1, hour ?? 0, minute ?? 0, second ?? 0);
  return Number.isNaN(time) ? null : time;
}

// Return about `many` round times between two instants, for the ticks of an axis.
export function findTicks(from, until, many) {
  const span = (until - from) / Math.max(1, many);
  if (span > 20 * DAY) return findMonthTicks(from, until, span);
  const steps = [1, 5, 15, 60, 300, 900, 3600, 10800, 21600, 86400, 172800, 604800].map((seconds) => seconds * 1000);
  const step = steps.find((one) => one >= span) ?? 14 * DAY;
  const ticks = [];
  for (let at = Math.ceil(from / step) * step; at <= until; at += step) ticks.push({ at, text: step >= DAY ? showDay(at) : showClock(at).slice(0, step >= 60000 ? 5 : 8) });
  return ticks;
}

function findMonthTicks(from, until, span) {
  const months = [1, 3, 6, 12, 24, 60, 120, 240, 600, 1200].find((one) => (one * YEAR) / 12 >= span) ?? 6000;
  const ticks = [];
  const first = new Date(from);
  let number = Math.ceil((first.getUTCFullYear() * 12 + first.getUTCMonth()) / months) * months;
  for (; ; number += months) {
    const at = Date.UTC(Math.floor(number / 12), number % 12, 1);
    if (at > until) return ticks;
    if (at >= from) ticks.push({ at, text: format(months % 12 ? "month" : "year", at) });
  }
}
