// The same scenario in every runtime: plain JavaScript without a build step and without runtime-specific APIs.
import {
  APIError,
  ConnectionError,
  createBudget,
  GenClient,
  NotFoundError,
  verifyWebhook,
  WebhookVerificationError,
} from 'gen-client';

/** Runs all steps and returns their results. */
export async function runScenario({ baseUrl, apiKey, webhook, wire, away }) {
  const browser = typeof document === 'object';
  const client = new GenClient({ apiKey, baseUrl, dangerouslyAllowBrowser: browser, maxRetries: 2, timeoutMs: 20_000 });
  let job;
  const steps = {
    async 'create through a 500'() {
      const { data, attempts, idempotencyKey } = await client.videos.create({ prompt: 'a fox' }).withResponse();
      job = data.job;
      equal(attempts, 2, 'attempts');
      equal(data.idempotencyKey, idempotencyKey, 'the key on the result');
      equal((await client.request({ method: 'GET', path: '/test/keys-of-create' })).count, 1, 'keys the service saw');
    },
    async wait() {
      const seen = [];
      const done = await client.waitForJob(job, { pollIntervalMs: 20, onUpdate: ({ status }) => seen.push(status) });
      equal(done.status, 'completed', 'status');
      equal(seen.at(-1), 'completed', 'the last reported status');
    },
    async upload() {
      const bytes = new Uint8Array(300_000);
      for (let at = 0; at < bytes.length; at += 1) bytes[at] = at % 251;
      bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
      let sent = 0;
      const upload = await client.uploads.upload(new Blob([bytes], { type: 'image/png' }), {
        filename: 'fox.png',
        onProgress: ({ sentBytes }) => {
          sent = sentBytes;
        },
      });
      equal(upload.upload_id, 'upl_1', 'upload_id');
      equal(sent, bytes.length, 'bytes reported by onProgress');
    },
    async 'output through a redirect'() {
      // A page can't see a redirect's target, and older browsers would send the key to it, so the client rejects it in browsers.
      if (browser) equal(APIError.isInstance(await caught(client.jobs.output(job))), true, 'a refusal');
      const response = await client.jobs.output(browser ? 'job_direct' : job);
      equal(await response.text(), 'the finished file', 'body');
    },
    async 'webhook verified'() {
      const event = await verifyWebhook({ body: webhook.body, headers: webhook.headers }, { secret: webhook.secret });
      equal(event.type, 'job.completed', 'type');
      const forged = verifyWebhook({ body: `${webhook.body} `, headers: webhook.headers }, { secret: webhook.secret });
      equal(WebhookVerificationError.isInstance(await caught(forged)), true, 'a tampered body refused');
    },
    async abort() {
      const controller = new AbortController();
      const reason = new Error('enough');
      const hanging = client.jobs.get('job_hangs', { signal: controller.signal });
      setTimeout(() => controller.abort(reason), 50);
      const start = Date.now();
      equal(await caught(hanging), reason, "the signal's own reason");
      if (Date.now() - start > 1_000) throw new Error('the abort came late');
    },
    async 'typed error'() {
      const error = await caught(client.jobs.get('job_nowhere'));
      equal(NotFoundError.isInstance(error), true, 'NotFoundError.isInstance');
      equal(error.code, 'job_not_found', 'code');
      equal(JSON.stringify(error).includes(apiKey), false, 'the key in the error');
    },
    async 'an unavailable service uses no budget'() {
      // Pages and Workers don't expose why a connection failed.
      if (away === undefined) return;
      const budget = createBudget({ maxTokens: 100, per: 'day' });
      const options = { apiKey, baseUrl: away, maxRetries: 0, budget };
      const error = await caught(new GenClient(options).videos.create({ prompt: 'a fox' }));
      equal(ConnectionError.isInstance(error), true, 'ConnectionError.isInstance');
      equal((await budget.usage()).leftTokens, 100, `tokens left after ${error.message}`);
    },
    async 'the table of the wire'() {
      const broken = [];
      for (const row of wire) {
        await runWire(row).catch((error) => broken.push(`${row.name}: ${error?.message ?? error}`));
      }
      equal(broken.join('; '), '', `rows that differ, of ${wire.length}`);
    },
  };
  const told = [];
  for (const [name, run] of Object.entries(steps)) {
    told.push(
      await run().then(
        () => ({ name }),
        (error) => ({ name, error: String(error?.stack ?? error) }),
      ),
    );
  }
  return told;
}

/** Runs a row of test/fixtures/wire.json: a call, its requests and responses, and its result or error. */
export async function runWire({ call, args, options, sends, answers, gives, throws }) {
  const sent = [];
  const fetch = async (url, init = {}) => {
    sent.push({ url: new URL(url), init });
    const answer = answers[sent.length - 1];
    if (answer === undefined) throw new Error(`request ${sent.length} was not expected`);
    if (answer === 'no connection') throw new TypeError('fetch failed');
    const { status = 200, headers, body, text = body === undefined ? null : JSON.stringify(body) } = answer;
    return new Response(text, { status, headers: { 'content-type': 'application/json', ...headers } });
  };
  const browser = typeof document === 'object';
  // Each row has its own account, because a 429 pauses an account's rate limits.
  rows += 1;
  const baseUrl = `https://gen-${rows}.test`;
  const client = new GenClient({ apiKey: 'test-key', baseUrl, fetch, dangerouslyAllowBrowser: browser, ...options });
  const at = call.slice(0, -1).reduce((value, name) => value[name], client);
  const outcome = await at[call.at(-1)](...args).then(
    (value) => ({ value }),
    (error) => ({ error }),
  );
  if (throws === undefined && outcome.error) throw outcome.error;
  if (throws !== undefined) contains(outcome.error, throws, 'the error');
  else if (gives !== undefined) contains(outcome.value, gives, 'the result');
  equal(sent.length, sends.length, 'requests');
  for (const [index, expected] of sends.entries()) {
    const { url, init } = sent[index];
    const headers = new Headers(init.headers);
    equal(url.pathname + url.search, expected.path, 'path');
    equal(init.method ?? 'GET', expected.method ?? init.method ?? 'GET', 'method');
    for (const [name, value] of Object.entries(expected.headers ?? {})) equal(headers.get(name), value, name);
    for (const name of expected.without ?? []) equal(headers.get(name), null, name);
    if (expected.body !== undefined) contains(JSON.parse(init.body), expected.body, 'the body');
  }
}

let rows = 0;

function contains(given, wanted, what) {
  if (typeof wanted !== 'object' || wanted === null) return equal(given, wanted, what);
  if (typeof given !== 'object' || given === null) throw new Error(`${what}: ${String(given)}`);
  if (Array.isArray(wanted)) equal(given.length, wanted.length, `${what}.length`);
  for (const [name, value] of Object.entries(wanted)) contains(given[name], value, `${what}.${name}`);
}

function equal(given, wanted, what) {
  if (given !== wanted) throw new Error(`${what}: ${String(given)} instead of ${String(wanted)}`);
}

function caught(promise) {
  return promise.then(
    () => new Error('nothing was thrown'),
    (error) => error,
  );
}
