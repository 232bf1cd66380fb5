import { describe, expect, test } from 'vitest';
import { ConnectionDropped } from '../../src/sandbox/index.js';
import { type PlainClient, setUp } from './plain-client.js';

const video = { prompt: 'a fox at dawn' };
const post = (client: PlainClient, headers?: Record<string, string>) =>
  client.call('POST', '/v1/videos', video, headers);

describe('effects', () => {
  test('a status replaces the response, with the documented or a custom code', async () => {
    const client = setUp();
    client.sandbox.faults.add({ status: 503, retryAfterS: 7 });
    client.sandbox.faults.add({ status: 500, code: 'flood' });
    const paused = await post(client);
    expect([paused.status, paused.body.error.code, paused.headers.get('retry-after')]).toEqual([
      503,
      'dispatch_disabled',
      '7',
    ]);
    expect((await post(client)).body.error.code).toBe('flood');
    expect((await post(client)).status).toBe(200);
    expect(client.sandbox.jobs).toHaveLength(1);
  });

  test('a status after the commit leaves a created job', async () => {
    const client = setUp();
    client.sandbox.faults.add({ status: 500, commit: true });
    expect((await post(client, { 'idempotency-key': 'k' })).status).toBe(500);
    const { id } = (await post(client, { 'idempotency-key': 'k' })).body.data.job;
    expect(client.sandbox.jobs.map((job) => job.id)).toEqual([id]);
  });

  test('a reset happens before the commit, as a network error', async () => {
    const client = setUp();
    client.sandbox.faults.add({ reset: true });
    const error = await post(client).catch((reason) => reason);
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ message: 'fetch failed', cause: { code: 'ECONNRESET' } });
    expect(client.sandbox.jobs).toEqual([]);
  });

  test('commitThenDrop creates the job, which the same key returns', async () => {
    const client = setUp();
    client.sandbox.faults.add({ commitThenDrop: true });
    await expect(post(client, { 'idempotency-key': 'k' })).rejects.toThrow('fetch failed');
    expect(client.sandbox.requests.at(-1)).toMatchObject({ fault: 'commitThenDrop' });
    expect((await post(client, { 'idempotency-key': 'k' })).body.data.job.id).toBe(client.sandbox.jobs[0]?.id);
    expect(client.sandbox.jobs).toHaveLength(1);
  });

  test('a truncated body announces its full length and ends halfway', async () => {
    const client = setUp();
    client.sandbox.faults.add({ truncate: true });
    const { fetch, baseUrl } = client.sandbox;
    const response = await fetch(`${baseUrl}/v1/models`);
    expect(Number(response.headers.get('content-length'))).toBeGreaterThan(1000);
    await expect(response.text()).rejects.toThrow('terminated');
  });

  test('a stalled body sends half, and never ends unless the caller aborts', async () => {
    const client = setUp();
    client.sandbox.faults.add({ stall: true });
    const controller = new AbortController();
    const response = await client.sandbox.fetch(`${client.sandbox.baseUrl}/v1/models`, { signal: controller.signal });
    const reader = response.body?.getReader();
    expect((await reader?.read())?.value?.length).toBeGreaterThan(500);
    const next = reader?.read();
    controller.abort(new Error('enough'));
    await expect(next).rejects.toThrow('enough');
  });

  test('latency delays the response on the manual clock, and an abort ends the wait', async () => {
    const client = setUp();
    client.sandbox.faults.add({ latencyMs: 5000, times: 2 });
    const response = post(client);
    await client.sandbox.advance(4999);
    expect(client.sandbox.jobs).toEqual([]);
    await client.sandbox.advance(1);
    expect((await response).status).toBe(200);
    const controller = new AbortController();
    const { fetch, baseUrl } = client.sandbox;
    const abortedResponse = fetch(`${baseUrl}/v1/models`, { signal: controller.signal });
    await new Promise((resolve) => setImmediate(resolve));
    controller.abort(new Error('enough'));
    await expect(abortedResponse).rejects.toThrow('enough');
  });

  test("a server's handler throws a ConnectionDropped, and so does a truncated body", async () => {
    const { sandbox } = setUp();
    sandbox.faults.add({ reset: true });
    sandbox.faults.add({ truncate: true });
    const request = () => new Request(`${sandbox.baseUrl}/v1/models`);
    await expect(sandbox.handle(request())).rejects.toBeInstanceOf(ConnectionDropped);
    await expect((await sandbox.handle(request())).text()).rejects.toBeInstanceOf(ConnectionDropped);
  });
});

describe('a rule', () => {
  test('matches by method and path, exact or as a pattern', async () => {
    const client = setUp();
    const { faults } = client.sandbox;
    faults.add({ match: { method: 'post', path: '/v1/images' }, status: 500 });
    expect((await post(client)).status).toBe(200);
    expect((await client.call('POST', '/v1/images', video)).status).toBe(500);
    faults.add({ match: { path: /output$/g }, status: 500, times: 2 });
    for (let at = 0; at < 2; at++) expect((await client.call('GET', '/v1/jobs/x/output')).status).toBe(500);
    expect((await client.call('GET', '/v1/jobs/x/output')).status).toBe(404);
  });

  test.each([
    ['/v1/jobs/*', '/v1/jobs/x/output', true],
    ['/v1/jobs/{job_id}', '/v1/jobs/x', true],
    ['/v1/jobs/{job_id}', '/v1/jobs/x/output', false],
    ['/v1/jobs/:id/output', '/v1/jobs/x/output', true],
    ['/v1/jobs/:id/output', '/v1/jobs/x/y/output', false],
    ['/v1/*/output', '/v1/jobs/x/output', true],
    ['/v1/*/output', '/v1/jobs/x/outputs', false],
    ['/v1/jobs.get', '/v1/jobs/get', false],
    ['/v1/(models|voices)', '/v1/models', false],
  ])('with the path %s matches %s: %s', async (path, actual, matches) => {
    const client = setUp();
    client.sandbox.faults.add({ match: { path }, status: 599 });
    expect((await client.call('GET', actual)).status === 599).toBe(matches);
  });

  test('applies from the nth request, for a number of times', async () => {
    const client = setUp();
    client.sandbox.faults.add({ match: { nth: 3 }, status: 500, times: 2 });
    const statuses = [];
    for (let at = 0; at < 6; at++) statuses.push((await post(client)).status);
    expect(statuses).toEqual([200, 200, 500, 500, 200, 200]);
  });

  test('with a probability affects the same requests for the same seed', async () => {
    const run = async (seed: number) => {
      const client = setUp({ seed });
      client.sandbox.faults.add({ status: 500, probability: 0.4 });
      const statuses = [];
      for (let at = 0; at < 50; at++) statuses.push((await client.call('GET', '/v1/models')).status);
      return statuses;
    };
    const first = await run(1);
    expect(await run(1)).toEqual(first);
    expect(await run(2)).not.toEqual(first);
    expect(first.filter((status) => status === 500).length).toBeGreaterThan(8);
  });

  test('can be listed, removed, and cleared', async () => {
    const client = setUp();
    const { faults } = client.sandbox;
    const id = faults.add({ match: { path: '/v1/models' }, status: 500, times: 9 });
    await client.call('GET', '/v1/models');
    expect(faults.list()).toMatchObject([{ id, seen: 1, struck: 1 }]);
    expect([faults.remove(id), faults.remove(id)]).toEqual([true, false]);
    faults.add({ status: 500 });
    faults.clear();
    expect((await client.call('GET', '/v1/models')).status).toBe(200);
  });
});
