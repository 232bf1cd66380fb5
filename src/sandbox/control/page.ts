import { JOB_ERRORS } from '../../errors/codes.js';
import { systemRandom } from '../../runtime/clock.js';

/**
 * The page at `/`: the sandbox's jobs, deliveries, requests and money, and buttons that change them. One script polls
 * `/_sandbox/state`. The document asks only the control surface, runs only its own script, and cannot be framed.
 */
export function renderPage(): Response {
  const nonce = systemRandom.uuid();
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "media-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': policy.join('; '),
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
  };
  return new Response(PAGE.replaceAll('{nonce}', nonce), { headers });
}

const OUTCOMES = [...Object.keys(JOB_ERRORS), 'canceled', 'blocked'].map((code) => `<option>${code}</option>`).join('');

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }
body { margin: 0 auto; padding: 1rem; max-width: 75rem; overflow-wrap: anywhere; }
h1 { font-size: 1.3rem; margin: 0; } h2 { font-size: 1.05rem; margin: 1.5rem 0 .5rem; }
.row { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; margin: .5rem 0; }
button, select, input { font: inherit; min-height: 2rem; } input[type=number] { width: 7rem; }
#jobs { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(17rem, 100%), 1fr)); gap: .75rem; list-style: none; padding: 0; }
#jobs li { border: 1px solid; border-radius: .5rem; padding: .6rem; }
#jobs p { margin: .3rem 0; max-height: 6rem; overflow: auto; }
img, video { display: block; width: 100%; height: 10rem; object-fit: contain; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; } td { padding: .2rem .6rem .2rem 0; vertical-align: top; }
pre { white-space: pre-wrap; margin: 0; }`;

const SCRIPT = `
"use strict";
const by = (id) => document.getElementById(id);
const el = (tag, props, ...children) => { const node = Object.assign(document.createElement(tag), props); node.append(...children); return node; };
const say = (text) => { by("say").textContent = text; };
const clock = (iso) => String(iso).slice(11, 19);

async function control(path, body, method = "POST") {
  try {
    const response = await fetch("/_sandbox/" + path, { method, body: method === "POST" ? JSON.stringify(body ?? {}) : undefined });
    const answer = await response.json();
    say(response.ok ? "Done: " + path : answer.error.message);
  } catch { say("The sandbox does not answer."); }
  await poll();
}

const button = (label, onclick) => el("button", { type: "button", onclick }, label);

/* A row that did not change keeps its node, so that a video plays on. */
function list(id, rows, render) {
  const parent = by(id);
  const known = new Map([...parent.children].map((node) => [node.dataset.text, node]));
  parent.replaceChildren(...rows.map((row) => {
    const text = JSON.stringify(row);
    const node = known.get(text) ?? render(row);
    node.dataset.text = text;
    return node;
  }));
}
const cells = (...parts) => el("tr", {}, ...parts.map((part) => el("td", {}, part)));

function media(job) {
  if (job.status !== "completed") return "";
  const src = "/_sandbox/jobs/" + job.id + "/output";
  if (job.mediaType === "image") return el("img", { src, alt: "", loading: "lazy" });
  return el(job.mediaType, { src, controls: true, preload: "metadata" });
}

function jobRow(job) {
  const problem = [job.errorCode, job.errorMessage, ...(job.warnings ?? [])].filter(Boolean).join(": ");
  const cost = job.completedAt ? job.finalTokenCost + " tokens charged" : job.quotedTokenCost + " tokens reserved";
  const finish = job.completedAt ? "" : button("Finish", () => control("jobs/" + job.id + "/finish"));
  return el("li", { id: "job-" + job.id }, media(job), el("p", { className: "prompt" }, job.prompt),
    el("p", {}, el("strong", { className: "status" }, job.status), " · " + job.modelId + " · " + cost), el("p", {}, problem),
    el("p", {}, job.id + " ", finish));
}

const deliveryRow = (one) => cells(clock(one.at), one.type, one.jobId, one.url, String(one.status ?? one.error),
  button("Send again", () => control("redeliver", { jobId: one.jobId })));
const requestRow = (one) => cells(clock(one.at), one.method, one.path + one.query,
  [one.status ?? "…", one.code, one.fault && "fault: " + one.fault].filter(Boolean).join(" "));
const ledgerRow = (one) => cells(clock(one.at), one.type, one.jobId ?? "", String(one.tokens), String(one.balanceTokens));

function show(state) {
  by("now").textContent = new Date(state.now).toISOString().slice(0, 19).replace("T", " ") + (state.isManual ? ", held" : ", ×" + state.speed);
  for (const name of ["url", "apiKey", "webhookSecret"]) by(name).textContent = state[name];
  const { balanceTokens, reservedTokens, spentTokens } = state.balance;
  by("money").textContent = balanceTokens + " tokens free, " + reservedTokens + " reserved, " + spentTokens + " charged";
  by("rules").textContent = "Next jobs: " + (state.outcomes.join(", ") || "as usual") + ". Fault rules: " + state.faults + ".";
  by("dispatch").checked = state.dispatch === "enabled";
  by("count").textContent = "Jobs: " + state.jobCount;
  list("jobs", state.jobs, jobRow);
  list("deliveries", state.deliveries, deliveryRow);
  list("requests", state.requests, requestRow);
  list("ledger", state.ledger, ledgerRow);
}

let timer;
async function poll() {
  clearTimeout(timer);
  try {
    show(await (await fetch("/_sandbox/state")).json());
    by("offline").hidden = true;
  } catch { by("offline").hidden = false; }
  timer = setTimeout(poll, document.hidden ? 30000 : 1000);
}

const advance = (seconds) => control("advance", { ms: seconds * 1000 });
by("ten").onclick = () => advance(10);
by("minute").onclick = () => advance(60);
by("advance").onsubmit = (event) => { event.preventDefault(); advance(Number(by("seconds").value)); };
by("set").onclick = () => {
  const code = by("code").value;
  return control("outcomes", code === "canceled" || code === "blocked" ? { status: code } : { errorCode: code });
};
by("clear").onclick = async () => { await control("outcomes", undefined, "DELETE"); await control("faults", undefined, "DELETE"); };
by("topup").onclick = () => control("topup", { usd: 20 });
by("dispatch").onchange = () => control("dispatch", { dispatch: by("dispatch").checked ? "enabled" : "disabled" });
by("reset").onclick = () => { if (confirm("Remove all jobs, keys, rules and logs?")) control("reset"); };
document.addEventListener("visibilitychange", poll);
poll();
`;

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>gen-client sandbox</title><link rel="icon" href="data:,"><style nonce="{nonce}">${STYLE}</style>
</head>
<body>
<h1>gen-client sandbox</h1>
<p id="offline" role="alert" hidden>The sandbox does not answer. Is it still running?</p>
<form id="advance" class="row"><time id="now"></time>
<button type="button" id="ten">+10 s</button><button type="button" id="minute">+1 min</button>
<label>Seconds <input type="number" id="seconds" min="0.001" step="any" value="600" required></label><button>Advance</button></form>
<div class="row"><label>Next job <select id="code">${OUTCOMES}</select></label><button type="button" id="set">Set</button>
<span id="rules"></span><button type="button" id="clear">Clear</button></div>
<div class="row"><span id="money"></span><button type="button" id="topup">Top up 20 USD</button>
<label><input type="checkbox" id="dispatch"> Creates are dispatched</label><button type="button" id="reset">Reset</button></div>
<p id="say" role="status"></p>
<main>
<h2 id="count">Jobs</h2><ul id="jobs"></ul>
<h2>Webhooks</h2><div class="scroll"><table><tbody id="deliveries"></tbody></table></div>
<h2>Requests</h2><div class="scroll"><table><tbody id="requests"></tbody></table></div>
<h2>Ledger</h2><div class="scroll"><table><tbody id="ledger"></tbody></table></div>
<h2>Access</h2><pre>URL    <span id="url"></span>
Key    <span id="apiKey"></span>
Secret <span id="webhookSecret"></span></pre>
</main>
<script nonce="{nonce}">${SCRIPT}</script>
</body>
</html>
`;
