import { systemRandom } from '../../runtime/clock.js';
import { SCRIPT } from './page-script.js';
import { STYLE } from './page-style.js';

/**
 * Renders the page at `/`: jobs, requests, webhooks, tokens, and rate limits, with buttons for time, outcomes, and faults. Its
 * content security policy allows only its own script and style, and no frames.
 */
export function renderPage(): Response {
  const nonce = systemRandom.uuid();
  const sources = `script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; img-src 'self' data:; media-src 'self'; connect-src 'self'`;
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'none'; ${sources}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
  };
  return new Response(PAGE.replaceAll('{nonce}', nonce), { headers });
}

const OUTCOMES: readonly (readonly [label: string, outcome: object])[] = [
  ['failed: generation_rejected', { status: 'failed', errorCode: 'generation_rejected' }],
  ['failed: generation_timeout', { status: 'failed', errorCode: 'generation_timeout' }],
  ['failed: reference_asset_failed', { status: 'failed', errorCode: 'reference_asset_failed' }],
  ['blocked', { status: 'blocked' }],
  ['canceled', { status: 'canceled' }],
  ['completed', { status: 'completed' }],
];

const FAULTS: readonly (readonly [label: string, rule: object])[] = [
  ['lost create response', { match: { method: 'POST' }, commitThenDrop: true }],
  ['429 for 5 s', { status: 429, code: 'rate_limited', retryAfterS: 5 }],
  ['500', { status: 500, code: 'internal_error' }],
  ['connection reset', { reset: true }],
  ['3 s latency', { latencyMs: 3000 }],
];

const optionsOf = (rows: typeof OUTCOMES): string =>
  rows.map(([label, value]) => `<option value='${JSON.stringify(value)}'>${label}</option>`).join('');

const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>gen-client sandbox</title><link rel="icon" href="data:,"><style nonce="{nonce}">${STYLE}</style>
<header><h1>gen-client <span>sandbox</span></h1><time id="now"></time></header>
<p id="offline" role="alert" hidden>The sandbox does not respond. Check that it is still running.</p>
<p id="failed" class="problem" role="alert"></p>
<main>
  <div class="panels">
    <section aria-label="Tokens">
      <div class="row"><h2>Tokens</h2><button id="topup" type="button">Top up $20</button></div>
      <p id="balance" class="figure"></p>
      <p id="money" class="soft"></p>
      <svg id="plot" viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label="Balance over time"><path/></svg>
      <p id="range" class="soft"></p>
    </section>
    <section aria-label="Rate limits"><h2>Rate limits, last minute</h2><ul id="limits"></ul></section>
    <section aria-label="Controls">
      <h2>Time</h2>
      <div class="row"><button id="ten" type="button">+10 s</button><button id="minute" type="button">+1 min</button>
        <button id="dispatch" type="button">Pause generation</button><button id="reset" type="button">Reset</button></div>
      <label for="outcome">Outcome of the next job</label>
      <div class="row"><select id="outcome">${optionsOf(OUTCOMES)}</select><button id="add-outcome" type="button">Add outcome</button></div>
      <p id="queued" class="soft"></p>
      <label for="fault">Fault of the next request</label>
      <div class="row"><select id="fault">${optionsOf(FAULTS)}</select><button id="add-fault" type="button">Add fault</button></div>
      <ul id="faults"></ul>
    </section>
  </div>
  <div class="columns">
    <section aria-label="Jobs"><h2>Jobs</h2><ul id="jobs" tabindex="0"></ul>
      <p id="jobs-none" class="none">No jobs yet. Create one with the base URL and the key that the terminal prints.</p></section>
    <div class="side">
      <section aria-label="Requests"><h2>Requests</h2><ul id="requests" class="log" tabindex="0"></ul><p id="requests-none" class="none">No requests yet.</p></section>
      <section aria-label="Webhooks"><h2>Webhooks</h2><ul id="deliveries" class="log" tabindex="0"></ul><p id="deliveries-none" class="none">No webhooks yet. Pass a webhook_url to a create.</p></section>
    </div>
  </div>
</main>
<script nonce="{nonce}">${SCRIPT}</script>
</html>
`;
