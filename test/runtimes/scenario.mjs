// The scenario that every runtime runs. Plain JavaScript without runtime-specific APIs.
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
export async function runScenario({ baseUrl, apiKey, webhook, wire, unavailableUrl }) {
  const client = new GenClient({
    apiKey,
    baseUrl,
    dangerouslyAllowBrowser: isBrowser,
    maxRetries: 2,
    timeoutMs: 20_000,
  });
  let job;
  const steps = {
    async 'a create is retried after a 500 with the same idempotency key'() {
      const { data, attempts, idempotencyKey } = await client.videos.create({ prompt: 'a fox' }).withResponse();
      job = data.job;
      equal(attempts, 2, 'attempts');
      equal(data.idempotencyKey, idempotencyKey, "the result's key");
      equal(
        (await client.request({ method: 'GET', path: '/test/create-keys' })).count,
        1,
        'keys that the service received',
      );
    },
    async 'a wait reports each status'() {
      const statuses = [];
      const onUpdate = ({ status }) => statuses.push(status);
      const completed = await client.waitForJob(job, { pollIntervalMs: 20, onUpdate });
      equal(completed.status, 'completed', 'status');
      equal(statuses.at(-1), 'completed', 'last reported status');
    },
    async 'an upload reports its progress'() {
      const bytes = new Uint8Array(300_000);
      for (let at = 0; at < bytes.length; at += 1) bytes[at] = at % 251;
      bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
      let progress = 0;
      const upload = await client.uploads.upload(new Blob([bytes], { type: 'image/png' }), {
        filename: 'fox.png',
        onProgress: ({ sentBytes }) => {
          progress = sentBytes;
        },
      });
      equal(upload.upload_id, 'upl_1', 'upload_id');
      equal(progress, bytes.length, 'bytes reported by onProgress');
    },
    async 'an output follows a redirect'() {
      // A browser hides the target of a redirect, and an older browser would send the API key to it, so the client throws there.
      if (isBrowser) equal(APIError.isInstance(await errorOf(client.jobs.output(job))), true, 'an APIError');
      const response = await client.jobs.output(isBrowser ? 'job_direct' : job);
      equal(await response.text(), 'the finished file', 'body');
    },
    async 'a webhook is verified'() {
      const event = await verifyWebhook({ body: webhook.body, headers: webhook.headers }, { secret: webhook.secret });
      equal(event.type, 'job.completed', 'type');
      const forged = verifyWebhook({ body: `${webhook.body} `, headers: webhook.headers }, { secret: webhook.secret });
      equal(WebhookVerificationError.isInstance(await errorOf(forged)), true, 'a WebhookVerificationError');
    },
    async 'an abort rejects immediately'() {
      const controller = new AbortController();
      const reason = new Error('aborted');
      const hanging = client.jobs.get('job_hangs', { signal: controller.signal });
      setTimeout(() => controller.abort(reason), 50);
      const start = Date.now();
      equal(await errorOf(hanging), reason, "the signal's reason");
      if (Date.now() - start > 1_000) throw new Error(`the abort took ${Date.now() - start} ms`);
    },
    async 'an error has a class and a code'() {
      const error = await errorOf(client.jobs.get('job_unknown'));
      equal(NotFoundError.isInstance(error), true, 'NotFoundError.isInstance');
      equal(error.code, 'job_not_found', 'code');
      equal(JSON.stringify(error).includes(apiKey), false, 'the error contains the key');
    },
    async 'an unavailable service uses no budget'() {
      // Browsers and Workers hide why a connection failed.
      if (unavailableUrl === undefined) return;
      const budget = createBudget({ maxTokens: 100, per: 'day' });
      const options = { apiKey, baseUrl: unavailableUrl, maxRetries: 0, budget };
      const error = await errorOf(new GenClient(options).videos.create({ prompt: 'a fox' }));
      equal(ConnectionError.isInstance(error), true, 'ConnectionError.isInstance');
      equal((await budget.usage()).leftTokens, 100, `tokens left after ${error.message}`);
    },
    async 'concurrent creates with a budget succeed'() {
      const budgeted = client.withOptions({ budget: createBudget({ maxTokens: 1_000 }) });
      const prompts = Array.from({ length: 10 }, (_, at) => `fox ${at}`);
      const created = await Promise.all(prompts.map((prompt) => budgeted.videos.create({ prompt })));
      equal(new Set(created.map(({ job }) => job.id)).size, prompts.length, 'jobs');
    },
    async 'every wire row passes'() {
      const failures = [];
      for (const row of wire) {
        await runWire(row).catch((error) => failures.push(`${row.name}: ${error?.message ?? error}`));
      }
      equal(failures.join('; '), '', `failures of ${wire.length} rows`);
    },
  };
  const results = [];
  for (const [name, run] of Object.entries(steps)) {
    results.push(
      await run().then(
        () => ({ name }),
        (error) => ({ name, error: String(error?.stack ?? error) }),
      ),
    );
  }
  return results;
}

/** Runs a row of test/fixtures/wire.json: a call, the expected requests and their responses, and the result or error. */
export async function runWire({ call, args, options, requests, responses, result, error }) {
  const sent = [];
  const fetch = async (url, init = {}) => {
    sent.push({ url: new URL(url), init });
    const response = responses[sent.length - 1];
    if (response === undefined) throw new Error(`request ${sent.length} was not expected`);
    if (response === 'no connection') throw new TypeError('fetch failed');
    const { status = 200, headers, body, text = body === undefined ? null : JSON.stringify(body) } = response;
    return new Response(text, { status, headers: { 'content-type': 'application/json', ...headers } });
  };
  // One account per row, because a 429 pauses the account's rate limits.
  accounts += 1;
  const baseUrl = `https://gen-${accounts}.test`;
  const client = new GenClient({ apiKey: 'test-key', baseUrl, fetch, dangerouslyAllowBrowser: isBrowser, ...options });
  const namespace = call.slice(0, -1).reduce((value, name) => value[name], client);
  const promise = namespace[call.at(-1)](...args);
  if (error === undefined) contains(await promise, result, 'result');
  else contains(await errorOf(promise), error, 'error');
  equal(sent.length, requests.length, 'requests');
  for (const [index, expected] of requests.entries()) {
    const { url, init } = sent[index];
    const headers = new Headers(init.headers);
    equal(url.pathname + url.search, expected.path, 'path');
    equal(init.method ?? 'GET', expected.method ?? init.method ?? 'GET', 'method');
    for (const [name, value] of Object.entries(expected.headers ?? {})) equal(headers.get(name), value, name);
    for (const name of expected.without ?? []) equal(headers.get(name), null, name);
    if (expected.body !== undefined) contains(JSON.parse(init.body), expected.body, 'body');
  }
}

let accounts = 0;
const isBrowser = typeof document === 'object';

/** Compares the expected fields only. */
function contains(actual, expected, what) {
  if (expected === undefined) return;
  if (typeof expected !== 'object' || expected === null) return equal(actual, expected, what);
  if (typeof actual !== 'object' || actual === null) throw new Error(`${what}: ${String(actual)}`);
  if (Array.isArray(expected)) equal(actual.length, expected.length, `${what}.length`);
  for (const [name, value] of Object.entries(expected)) contains(actual[name], value, `${what}.${name}`);
}

function equal(actual, expected, what) {
  if (actual !== expected) throw new Error(`${what}: ${String(actual)} instead of ${String(expected)}`);
}

function errorOf(promise) {
  return promise.then(
    () => new Error('the call did not throw'),
    (error) => error,
  );
}
