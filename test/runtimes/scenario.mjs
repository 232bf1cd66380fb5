// The same scenario in every runtime. Plain JavaScript, because some of them run it as it stands, and no runtime's own API.
import { APIError, GenClient, NotFoundError, verifyWebhook, WebhookVerificationError } from 'gen-client';

/** Runs all steps and tells how each went. */
export async function runScenario({ baseUrl, apiKey, webhook }) {
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
      equal(seen.at(-1), 'completed', 'the last state told');
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
      equal(sent, bytes.length, 'bytes told by onProgress');
    },
    async 'output through a redirect'() {
      // A page is not told where a redirect leads, and an older browser would send the key along: refused there.
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

function equal(given, wanted, what) {
  if (given !== wanted) throw new Error(`${what}: ${String(given)} instead of ${String(wanted)}`);
}

function caught(promise) {
  return promise.then(
    () => new Error('nothing was thrown'),
    (error) => error,
  );
}
