/** Script of the sandbox's page. Polls `/_sandbox/state`, and never parses markup. */
export const SCRIPT = `
"use strict";
const by = (id) => document.getElementById(id);
const el = (tag, props, ...children) => { const node = Object.assign(document.createElement(tag), props); node.append(...children); return node; };

/* Unchanged rows keep their nodes, so that videos continue to play. */
function list(id, rows, render) {
  const nodes = new Map([...by(id).children].map((node) => [node.dataset.text, node]));
  by(id).replaceChildren(...rows.map((row) => {
    const text = JSON.stringify(row);
    const node = nodes.get(text) ?? render(row);
    node.dataset.text = text;
    return node;
  }));
  by(id + "-none")?.toggleAttribute("hidden", rows.length > 0);
}
const clockText = (at) => new Date(at).toISOString().slice(11, 19);
const clock = (at) => el("time", { dateTime: at, title: at }, clockText(at));
const isGood = (status) => status >= 200 && status < 300;
const badge = (text, kind) => el("span", { className: "badge " + kind }, text);

function mediaOf(job) {
  const src = "/_sandbox/jobs/" + job.id + "/output";
  if (job.status !== "completed") return el("div", { className: job.completedAt ? "media" : "media busy" }, job.completedAt ? "No file" : "Generating…");
  const file = job.mediaType === "image" ? el("img", { src, alt: job.prompt, loading: "lazy" }) : el("video", { src, controls: true, preload: "metadata" });
  return el("div", { className: "media" }, file);
}
function jobCard(job) {
  const isFinal = job.completedAt !== null;
  const cost = isFinal ? job.finalTokenCost + " tokens" : job.quotedTokenCost + " tokens reserved";
  const status = badge(job.status, "status " + (job.status === "completed" ? "good" : isFinal ? "bad" : ""));
  const problem = [job.errorCode, job.errorMessage, ...(job.warnings ?? [])].filter(Boolean).join(": ");
  const finish = isFinal ? "" : el("button", { type: "button", onclick: () => send("POST", "jobs/" + job.id + "/finish", {}) }, "Finish now");
  return el("li", { id: "job-" + job.id }, mediaOf(job), el("p", { className: "prompt", title: job.prompt }, job.prompt || "(no prompt)"),
    el("p", { className: "facts" }, status, cost, el("span", {}, job.modelId)),
    ...(problem ? [el("p", { className: "problem" }, problem)] : []), el("p", { className: "last" }, el("code", { title: job.id }, job.id), finish));
}
function deliveryRow(delivery) {
  const status = delivery.status === null ? badge(delivery.error ?? "no response", "bad") : badge(delivery.status, isGood(delivery.status) ? "good" : "bad");
  const attempt = delivery.attempt > 1 ? " (attempt " + delivery.attempt + ")" : "";
  return el("li", {}, clock(delivery.at), el("span", { className: "what" }, delivery.type + attempt), status, el("code", { className: "more", title: delivery.url }, delivery.url));
}
function requestRow(request) {
  const kind = request.status === null ? "" : isGood(request.status) ? "good" : "bad";
  const path = request.method + " " + request.path + request.query;
  const notes = [request.code, request.fault && "fault: " + request.fault].filter(Boolean).join(", ");
  return el("li", {}, clock(request.at), el("code", { className: "what", title: path }, path), badge(request.status ?? (request.fault ? "dropped" : "…"), kind),
    ...(notes ? [el("span", { className: "more soft" }, notes)] : []));
}
function limitRow({ name, used, limit, windowMs }) {
  const text = used + " of " + limit + (windowMs === 60000 ? "" : " in " + windowMs / 1000 + " s");
  const bar = el("progress", { value: used, max: limit });
  bar.setAttribute("aria-label", name);
  return el("li", {}, name, el("span", { className: "soft" }, text), bar);
}
const faultChip = ({ id, label, left }) => el("li", {}, el("button", { type: "button", title: "Remove this fault", onclick: () => send("DELETE", "faults/" + id) }, label + (left > 1 ? " × " + left : "") + " ✕"));

/* Plots the balance as steps, from the ledger's newest entries. */
function plot(entries) {
  const times = entries.map((entry) => Date.parse(entry.at)), balances = entries.map((entry) => entry.balanceTokens);
  const low = Math.min(...balances), high = Math.max(...balances), span = Math.max(1, times.at(-1) - times[0]);
  const x = (at) => (100 * (times[at] - times[0])) / span;
  const y = (tokens) => 37 - (34 * (tokens - low)) / (high - low);
  const line = balances.map((tokens, at) => (at ? "H" + x(at) + "V" : "M-9 ") + y(tokens)).join("");
  by("plot").toggleAttribute("hidden", !(high > low));
  by("plot").firstElementChild.setAttribute("d", high > low ? line + "H109V49H-9Z" : "");
  by("range").textContent = high > low ? "Balance from " + low + " to " + high + " tokens, " + clockText(times[0]) + " to " + clockText(times.at(-1)) : "";
}

function show({ now, money, jobs, deliveries, requests, limits, faults, entries, dispatch, outcomes }) {
  const iso = new Date(now).toISOString();
  by("now").textContent = iso.replace("T", " ").slice(0, 19) + " UTC";
  by("now").dateTime = iso;
  by("balance").textContent = money.balanceTokens + " tokens";
  by("money").textContent = money.reservedTokens + " reserved, " + money.spentTokens + " charged";
  by("queued").textContent = outcomes === 0 ? "" : outcomes === 1 ? "1 outcome is queued." : outcomes + " outcomes are queued.";
  by("dispatch").textContent = dispatch === "enabled" ? "Pause generation" : "Resume generation";
  by("dispatch").dataset.next = dispatch === "enabled" ? "disabled" : "enabled";
  plot(entries);
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
