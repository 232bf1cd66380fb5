import { describe, expect, it } from 'vitest';
import type { SandboxOptions } from '../../src/sandbox/index.js';
import { countLines, countRemaining, createCalls, createService, png, prompt } from './by-value-setup.js';
import { failure } from './support.js';

describe("a create's uploads are deleted", () => {
  const cases: [string, SandboxOptions, string][] = [
    ['if the balance is insufficient', { balanceTokens: 0 }, 'insufficient_balance'],
    ['if generation is paused', { dispatch: 'disabled' }, 'dispatch_disabled'],
  ];
  it.each(cases)('%s', async (_, options, code) => {
    const { sandbox } = createService(options);
    const client = sandbox.client({ maxRetries: 0 });
    for (const call of createCalls(client)) {
      const params = { prompt, first_frame_upload_id: png(), last_frame_upload_id: png() };
      await expect(call(params)).rejects.toMatchObject({ code });
    }
    expect(countRemaining(sandbox)).toBe(0);
  });

  it("after the service's 429s", async () => {
    const { sandbox } = createService();
    sandbox.faults.add({ match: { method: 'POST', path: '/v1/videos' }, status: 429, code: 'rate_limited', times: 2 });
    const client = sandbox.client({ rateLimit: 'throw' });
    for (const call of createCalls(client)) {
      await expect(call({ prompt, first_frame_upload_id: png() })).rejects.toMatchObject({ status: 429 });
    }
    expect(countRemaining(sandbox)).toBe(0);
  });

  it("or never started if the body can't be serialized", async () => {
    const { client, log } = createService();
    for (const call of createCalls(client)) {
      const error = await failure(call({ prompt, first_frame_upload_id: png(), seed: 1n }));
      expect(error.name).toBe('GenError');
      expect(error.message).toContain('cannot be serialized as JSON');
    }
    expect(log()).toEqual([]);
  });

  it("or never started if the rate limit is reached and the call doesn't wait", async () => {
    const { sandbox, log } = createService();
    const client = sandbox.client({ rateLimit: 'throw' });
    for (let at = 0; at < 20; at++) await client.videos.create({ prompt });
    const requestCount = log().length;
    const rejected = client.videos.create({ prompt, first_frame_upload_id: png() });
    await expect(rejected).rejects.toMatchObject({ name: 'RateLimitError', attempts: 0 });
    expect(log().length).toBe(requestCount);
  });

  it('unless a job may exist, in which case the error lists them', async () => {
    const { sandbox } = createService({ jobDurationMs: 60_000 });
    const client = sandbox.client({ maxRetries: 0 });
    const params = () => ({ prompt, first_frame_upload_id: png(), last_frame_upload_id: png() });
    for (const call of createCalls(client)) {
      sandbox.faults.add({ match: { method: 'POST', path: '/v1/videos' }, commitThenDrop: true, times: 1 });
      const { uploadIds } = (await failure(call(params()))) as Error & { uploadIds?: string[] };
      expect(uploadIds).toHaveLength(2);
      expect(uploadIds?.toSorted()).toEqual([...(sandbox.jobs.at(-1)?.uploadIds ?? [])].sort());
    }
    const rejected = client.videos.create({ ...params(), model: 'svc-none' } as never);
    expect(await failure(rejected)).not.toHaveProperty('uploadIds');
  });

  it('after a rejected registration', async () => {
    const { sandbox } = createService();
    const code = 'character_registration_failed';
    sandbox.faults.add({ match: { method: 'POST', path: '/v1/characters' }, status: 422, code });
    const register = sandbox.client().characters.register({ name: 'Fox', upload_id: png() });
    await expect(register).rejects.toMatchObject({ code });
    expect(countRemaining(sandbox)).toBe(0);
  });

  it('except those that the caller passed by ID', async () => {
    const { sandbox, client } = createService();
    const { upload_id } = await client.uploads.upload(png());
    sandbox.faults.add({ match: { method: 'POST', path: '/v1/videos' }, status: 402, code: 'insufficient_balance' });
    const params = { prompt, first_frame_upload_id: upload_id, last_frame_upload_id: png() };
    await expect(client.videos.create(params)).rejects.toMatchObject({ status: 402 });
    const deleted = sandbox.requests.filter(({ method }) => method === 'DELETE').map(({ path }) => path);
    expect(deleted).toHaveLength(1);
    expect(deleted[0]).not.toContain(upload_id);
  });

  it('after a failed upload, which cancels the others and the create', async () => {
    const { sandbox, log } = createService();
    const second = { method: 'POST', path: '/v1/uploads/complete', nth: 2 } as const;
    sandbox.faults.add({ match: second, status: 400, code: 'upload_invalid' });
    const error = await failure(
      sandbox.client().videos.create({ prompt, reference_image_upload_ids: [png(), png(), png()] }),
    );
    expect(error).toMatchObject({ name: 'UploadError', step: 'complete' });
    expect(error.message).toMatch(/^reference_image_upload_ids\[\d\]: /);
    expect(countLines(log(), 'POST /v1/videos')).toBe(0);
    await expect.poll(() => countLines(log(), 'DELETE')).toBe(3);
  });

  it('after an abort during the upload, which rejects with its reason', async () => {
    const { sandbox, log } = createService();
    const controller = new AbortController();
    const reason = new Error('enough');
    const client = sandbox.client({
      fetch: (input, init) => {
        const request = new Request(input, init);
        if (request.method === 'PUT') controller.abort(reason);
        return sandbox.fetch(request);
      },
    });
    const params = { prompt, first_frame_upload_id: png() };
    expect(await failure(client.videos.createAndWait(params, { signal: controller.signal }))).toBe(reason);
    await expect.poll(() => countLines(log(), 'DELETE')).toBe(1);
    expect(countLines(log(), 'POST /v1/videos')).toBe(0);
  });
});
