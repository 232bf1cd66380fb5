import { systemRandom } from '../../runtime/clock.js';

/**
 * The page at `/`: the sandbox's jobs, webhooks, requests and money, and buttons that move its time. One script polls
 * `/_sandbox/state`. The document asks only the control surface, runs only its own script, and cannot be framed.
 */
export function renderPage(): Response {
  const nonce = systemRandom.uuid();
  const own = `script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; img-src 'self' data:; media-src 'self'; connect-src 'self'`;
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'none'; ${own}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
  };
  return new Response(PAGE.replaceAll('{nonce}', nonce), { headers });
}

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }
body { margin: 0 auto; padding: 1rem; max-width: 75rem; overflow-wrap: anywhere; }
#jobs { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(17rem, 100%), 1fr)); gap: .75rem; list-style: none; padding: 0; }
#jobs li { border: 1px solid; border-radius: .5rem; padding: .6rem; }
img, video { width: 100%; height: 10rem; object-fit: contain; }
td { padding-right: .6rem; vertical-align: top; }`;

const SCRIPT = `
"use strict";
const by = (id) => document.getElementById(id);
const el = (tag, props, ...children) => { const node = Object.assign(document.createElement(tag), props); node.append(...children); return node; };

/* A row that did not change keeps its node, so that a video plays on. */
function list(id, rows, render) {
  const known = new Map([...by(id).children].map((node) => [node.dataset.text, node]));
  by(id).replaceChildren(...rows.map((row) => {
    const text = JSON.stringify(row);
    const node = known.get(text) ?? render(row);
    node.dataset.text = text;
    return node;
  }));
}
const cells = (...parts) => el("tr", {}, ...parts.map((part) => el("td", {}, part)));

function jobRow(job) {
  const src = "/_sandbox/jobs/" + job.id + "/output";
  const media = job.status !== "completed" ? "" : job.mediaType === "image" ? el("img", { src, alt: "" }) : el("video", { src, controls: true });
  const cost = job.completedAt ? job.finalTokenCost + " tokens charged" : job.quotedTokenCost + " tokens reserved";
  const problem = [job.errorCode, job.errorMessage, ...(job.warnings ?? [])].filter(Boolean).join(": ");
  return el("li", { id: "job-" + job.id }, media, el("p", { className: "prompt" }, job.prompt),
    el("p", {}, el("strong", { className: "status" }, job.status), " · " + job.modelId + " · " + cost), el("p", {}, problem), job.id);
}

function show({ now, money, jobs, deliveries, requests }) {
  by("now").textContent = new Date(now).toISOString();
  by("money").textContent = money.balanceTokens + " tokens free, " + money.reservedTokens + " reserved, " + money.spentTokens + " charged";
  list("jobs", jobs, jobRow);
  list("deliveries", deliveries, (one) => cells(one.at, one.type, one.jobId, one.url, String(one.status ?? one.error)));
  list("requests", requests, (one) => cells(one.at, one.method, one.path + one.query, [one.status ?? "…", one.code].filter(Boolean).join(" ")));
}

let timer;
async function poll() {
  clearTimeout(timer);
  try {
    show(await (await fetch("/_sandbox/state")).json());
    by("offline").hidden = true;
  } catch { by("offline").hidden = false; }
  timer = setTimeout(poll, 1000);
}
const advance = async (ms) => { await fetch("/_sandbox/advance", { method: "POST", body: JSON.stringify({ ms }) }); await poll(); };
by("ten").onclick = () => advance(10_000);
by("minute").onclick = () => advance(60_000);
poll();
`;

const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>gen-client sandbox</title><link rel="icon" href="data:,"><style nonce="{nonce}">${STYLE}</style>
<h1>gen-client sandbox</h1>
<p id="offline" role="alert" hidden>The sandbox does not answer. Is it still running?</p>
<p><time id="now"></time> <button id="ten">+10 s</button> <button id="minute">+1 min</button> <span id="money"></span></p>
<h2>Jobs</h2><ul id="jobs"></ul>
<h2>Webhooks</h2><table><tbody id="deliveries"></tbody></table>
<h2>Requests</h2><table><tbody id="requests"></tbody></table>
<script nonce="{nonce}">${SCRIPT}</script>
</html>
`;
