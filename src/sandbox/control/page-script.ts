/** The script of the sandbox's page: it polls `/_sandbox/state`, and builds every node from text, never from markup. */
export const SCRIPT = `
"use strict";
const by = (id) => document.getElementById(id);
const el = (tag, props, ...children) => { const node = Object.assign(document.createElement(tag), props); node.append(...children); return node; };

/* A row that did not change keeps its node, so that a video continues to play. */
function list(id, rows, render, none) {
  const known = new Map([...by(id).children].map((node) => [node.dataset.text, node]));
  by(id).replaceChildren(...rows.map((row) => {
    const text = JSON.stringify(row);
    const node = known.get(text) ?? render(row);
    node.dataset.text = text;
    return node;
  }));
  by(id + "-none")?.toggleAttribute("hidden", rows.length > 0);
}
const clock = (at) => { const iso = new Date(at).toISOString(); return el("time", { dateTime: iso, title: iso }, iso.slice(11, 19)); };
const isGood = (status) => status >= 200 && status < 300;
const badge = (text, kind) => el("span", { className: "badge " + kind }, text);

function mediaOf(job) {
  const src = "/_sandbox/jobs/" + job.id + "/output";
  if (job.status !== "completed") return el("div", { className: "media empty" }, job.completedAt ? "no file" : "generating…");
  const file = job.mediaType === "image" ? el("img", { src, alt: job.prompt, loading: "lazy" }) : el("video", { src, controls: true, preload: "metadata" });
  return el("div", { className: "media" }, file);
}
function jobCard(job) {
  const isFinal = job.completedAt !== null;
  const cost = isFinal ? job.finalTokenCost + " tokens charged" : job.quotedTokenCost + " tokens reserved";
  const kind = job.status === "completed" ? "good" : isFinal ? "bad" : "";
  const status = badge(job.status, kind + " status");
  const problem = [job.errorCode, job.errorMessage, ...(job.warnings ?? [])].filter(Boolean).join(": ");
  const finish = isFinal ? "" : el("button", { type: "button", onclick: () => send("POST", "jobs/" + job.id + "/finish", {}) }, "Finish now");
  return el("li", { id: "job-" + job.id }, mediaOf(job), el("p", { className: "prompt", title: job.prompt }, job.prompt || "(no prompt)"),
    el("p", { className: "facts" }, status, cost), el("p", { className: "soft" }, job.modelId),
    ...(problem ? [el("p", { className: "problem" }, problem)] : []), el("p", { className: "last" }, el("code", { title: job.id }, job.id), finish));
}
function deliveryRow(one) {
  const answer = one.status === null ? badge(one.error ?? "no response", "bad") : badge(one.status, isGood(one.status) ? "good" : "bad");
  const again = one.attempt > 1 ? " (attempt " + one.attempt + ")" : "";
  return el("li", {}, clock(one.at), el("span", { className: "what" }, one.type + again), answer, el("code", { className: "more", title: one.url }, one.url));
}
function requestRow(one) {
  const kind = one.status === null ? "" : isGood(one.status) ? "good" : "bad";
  const path = one.method + " " + one.path + one.query;
  const notes = [one.code, one.fault && "fault: " + one.fault].filter(Boolean).join(", ");
  return el("li", {}, clock(one.at), el("code", { className: "what", title: path }, path), badge(one.status ?? (one.fault ? "dropped" : "…"), kind),
    ...(notes ? [el("span", { className: "more soft" }, notes)] : []));
}
function limitRow({ name, used, limit, windowMs }) {
  const text = used + " of " + limit + (windowMs === 60000 ? "" : " in " + windowMs / 1000 + " s");
  const bar = el("progress", { value: used, max: limit });
  bar.setAttribute("aria-label", name);
  return el("li", {}, name, el("span", { className: "soft" }, text), bar);
}
const faultChip = ({ id, label, left }) => el("li", {}, el("button", { type: "button", title: "Remove this fault", onclick: () => send("DELETE", "faults/" + id) }, label + (left > 1 ? " × " + left : "") + " ✕"));

/* Steps of the balance, and of what was charged, from the ledger's newest entries. */
function plot(entries, spent) {
  const svg = by("plot");
  const first = Date.parse(entries[0]?.at ?? 0), span = Math.max(1, Date.parse(entries.at(-1)?.at ?? 0) - first);
  let charged = spent - entries.reduce((sum, one) => sum + (one.type === "charge" ? one.tokens : 0), 0);
  const points = entries.map((one) => ({ x: (100 * (Date.parse(one.at) - first)) / span, balance: one.balanceTokens, charged: (charged += one.type === "charge" ? one.tokens : 0) }));
  const top = Math.max(1, ...points.map((one) => Math.max(one.balance, one.charged)));
  const path = (name) => points.map((one, at) => (at ? "H" + one.x : "M0") + (at ? "V" : " ") + (38 - (36 * one[name]) / top)).join("") + "H100";
  for (const name of ["balance", "charged"]) svg.querySelector("." + name).setAttribute("d", points.length ? path(name) : "");
}

function show({ now, money, jobs, deliveries, requests, limits, faults, entries, dispatch, outcomes }) {
  const iso = new Date(now).toISOString();
  by("now").textContent = iso.replace("T", " ").slice(0, 19) + " UTC";
  by("now").dateTime = iso;
  by("balance").textContent = money.balanceTokens + " tokens";
  by("money").textContent = money.balanceTokens + " tokens free, " + money.reservedTokens + " reserved, " + money.spentTokens + " charged";
  by("queued").textContent = outcomes === 0 ? "" : outcomes === 1 ? "1 outcome is queued." : outcomes + " outcomes are queued.";
  by("dispatch").textContent = dispatch === "enabled" ? "Pause generation" : "Resume generation";
  by("dispatch").dataset.next = dispatch === "enabled" ? "disabled" : "enabled";
  plot(entries, money.spentTokens);
  list("limits", limits, limitRow);
  list("faults", faults, faultChip);
  list("jobs", jobs, jobCard);
  list("deliveries", deliveries, deliveryRow);
  list("requests", requests, requestRow);
}

let timer;
async function poll() {
  clearTimeout(timer);
  try {
    if (!document.hidden) show(await (await fetch("/_sandbox/state")).json());
    by("offline").hidden = true;
  } catch { by("offline").hidden = false; }
  timer = setTimeout(poll, 1000);
}
async function send(method, path, body) {
  try {
    const response = await fetch("/_sandbox/" + path, { method, body: body && JSON.stringify(body) });
    const { error } = await response.json();
    by("failed").textContent = error?.message ?? "";
  } catch { by("offline").hidden = false; }
  await poll();
}
const choice = (id) => JSON.parse(by(id).value);
by("ten").onclick = () => send("POST", "advance", { ms: 10000 });
by("minute").onclick = () => send("POST", "advance", { ms: 60000 });
by("topup").onclick = () => send("POST", "topup", { usd: 20 });
by("add-outcome").onclick = () => send("POST", "outcomes", choice("outcome"));
by("add-fault").onclick = () => send("POST", "faults", choice("fault"));
by("dispatch").onclick = () => send("POST", "dispatch", { dispatch: by("dispatch").dataset.next });
by("reset").onclick = () => send("POST", "reset", {});
document.addEventListener("visibilitychange", poll);
poll();
`;
