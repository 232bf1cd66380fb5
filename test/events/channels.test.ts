import { AsyncLocalStorage } from 'node:async_hooks';
import { channel, subscribe, tracingChannel, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { JobEvent } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import type { JobTrace, RequestTrace, WaitTrace } from '../../src/transport/events.js';
import { errorOf } from '../support/rejection.js';
import { json, stubbed } from '../transport/support.js';

const VIDEO = { prompt: 'a fox at dawn', duration: 4 } as const;
const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

type Message = readonly [channel: string, phase: string, message: unknown];

/** Records the messages of a tracing channel. */
function recordMessages(
  name: 'job' | 'request' | 'wait',
  messages: Message[],
  onPhase: (phase: string) => void = () => {},
) {
  const phases = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const;
  const record = (phase: string) => (message: unknown) => {
    messages.push([name, phase, message]);
    onPhase(phase);
  };
  const [start, end, asyncStart, asyncEnd, error] = phases.map(record);
  if (!start || !end || !asyncStart || !asyncEnd || !error) throw new Error('a phase is missing');
  const subscribers = { start, end, asyncStart, asyncEnd, error };
  const channel = tracingChannel(`gen-client:${name}`);
  channel.subscribe(subscribers);
  stops.push(() => channel.unsubscribe(subscribers));
}

const phasesOf = (messages: readonly Message[]) => messages.map(([channel, phase]) => `${channel} ${phase}`);

function openSandbox() {
  const sandbox = createSandbox({ clock: 'manual' });
  return { sandbox, client: sandbox.client() };
}

describe('the diagnostics channels', () => {
  test("publish the params without the files' bytes", async () => {
    const messages: Message[] = [];
    recordMessages('job', messages);
    const { client } = openSandbox();
    const file = new File(['x'.repeat(1_000)], 'fox.png', { type: 'image/png' });
    const params = { prompt: 'a fox', reference_upload_ids: [file, new Uint8Array(10), 'upl_1'] };
    await client.images.create(params, { preflight: false }).catch(() => {});
    const [, , trace] = messages[0] ?? [];
    expect((trace as JobTrace).params).toEqual({ prompt: 'a fox', reference_upload_ids: [{}, {}, 'upl_1'] });
  });

  test("don't fail for circular params, for which the create rejects with an explanation", async () => {
    const messages: Message[] = [];
    recordMessages('job', messages);
    const { sandbox, client } = openSandbox();
    const item: Record<string, unknown> = { type: 'text', text: 'a fox' };
    item.self = { item };
    const params = { ...VIDEO, content: [item] };
    await expect(client.videos.create(params as never)).rejects.toMatchObject({
      name: 'GenError',
      message: expect.stringMatching(/^videos\.create: the params cannot be serialized as JSON/),
    });
    expect(sandbox.requests).toHaveLength(0);
  });

  test('trace a job from its create to its end, including its requests and its wait', async () => {
    const { sandbox, client } = openSandbox();
    const messages: Message[] = [];
    for (const name of ['job', 'request', 'wait'] as const) recordMessages(name, messages);
    const wait = client.videos.createAndWait(VIDEO, { idempotencyKey: 'order-1' });
    await sandbox.advance(60_000);
    const { id } = await wait;
    expect(phasesOf(messages)).toEqual([
      ...['job start', 'request start', 'request end', 'job end', 'request asyncStart', 'request asyncEnd'],
      ...['wait start', 'wait end'],
      ...['request start', 'request end', 'job asyncStart', 'job asyncEnd', 'request asyncStart', 'request asyncEnd'],
      ...['wait asyncStart', 'wait asyncEnd'],
    ]);
    const [, , job] = messages[0] ?? [];
    const [, , create] = messages[1] ?? [];
    expect(job).toMatchObject({ call: 'videos', jobId: id, event: { phase: 'final' } });
    expect(create).toMatchObject({ name: 'videos.create', path: '/v1/videos', attempts: 1, limitWaitMs: 0, job });
    // A trace uses one message object from start to end.
    expect(messages.filter(([name]) => name === 'job').every(([, , message]) => message === job)).toBe(true);
    const waits = messages.filter(([name]) => name === 'wait').map(([, , message]) => message as WaitTrace);
    expect(new Set(waits)).toEqual(new Set([{ jobId: id }]));
  });

  test('publish nothing without a subscriber', async () => {
    const { sandbox, client } = openSandbox();
    const ends = ['job', 'request', 'wait'].map((name) => channel(`tracing:gen-client:${name}:end`));
    const publish = ends.map((end) => vi.spyOn(end, 'publish'));
    const createOne = async () => {
      const wait = client.videos.createAndWait(VIDEO);
      await sandbox.advance(60_000);
      await wait;
    };
    await createOne();
    expect(publish.map(({ mock }) => mock.calls.length)).toEqual([0, 0, 0]);
    for (const name of ['job', 'request', 'wait'] as const) recordMessages(name, []);
    await createOne();
    expect(publish.every(({ mock }) => mock.calls.length > 0)).toBe(true);
    vi.restoreAllMocks();
  });

  test('publish each job event', async () => {
    const { sandbox, client } = openSandbox();
    const events: JobEvent[] = [];
    const onEvent = (event: unknown) => void events.push(event as JobEvent);
    subscribe('gen-client:job', onEvent);
    stops.push(() => unsubscribe('gen-client:job', onEvent));
    const wait = client.videos.createAndWait(VIDEO);
    await sandbox.advance(60_000);
    const { id } = await wait;
    expect(events.map(({ phase, jobId }) => [phase, jobId])).toEqual([
      ['accepted', id],
      ['final', id],
    ]);
  });

  test("publish a failed create's error, and end its job's trace", async () => {
    const { sandbox, client } = openSandbox();
    sandbox.faults.add({ match: { method: 'POST' }, status: 400, code: 'model_not_found' });
    const messages: Message[] = [];
    for (const name of ['job', 'request'] as const) recordMessages(name, messages);
    const error = await errorOf(client.videos.create(VIDEO));
    expect(phasesOf(messages)).toEqual([
      ...['job start', 'request start', 'request end', 'job end'],
      ...['request error', 'request asyncStart', 'request asyncEnd'],
      ...['job error', 'job asyncStart', 'job asyncEnd'],
    ]);
    expect(messages.every(([, , message]) => (message as RequestTrace).error === error)).toBe(true);
  });

  test('end the trace of a job whose create gets an undocumented response', async () => {
    const messages: Message[] = [];
    recordMessages('job', messages);
    const { client } = stubbed(() => json({ success: true, data: {} }), { maxRetries: 0 });
    await client.videos.create(VIDEO).catch(() => {});
    expect(phasesOf(messages)).toEqual(['job start', 'job end', 'job error', 'job asyncStart', 'job asyncEnd']);
  });

  test('start in the async context of the caller', async () => {
    const { client } = openSandbox();
    const caller = new AsyncLocalStorage<string>();
    const stores: unknown[] = [];
    const messages: Message[] = [];
    for (const name of ['job', 'request'] as const)
      recordMessages(name, messages, (phase) => phase === 'start' && stores.push(caller.getStore()));
    await Promise.all(['a', 'b'].map((name) => caller.run(name, async () => client.videos.create(VIDEO))));
    expect(stores.sort()).toEqual(['a', 'a', 'b', 'b']);
  });

  test("don't contain a direct upload's query, which is a credential", async () => {
    const { client } = openSandbox();
    const messages: Message[] = [];
    recordMessages('request', messages);
    await client.uploads.upload(new Blob(['not really a picture']), { filename: 'fox.png', mimeType: 'image/png' });
    const traces = messages.map(([, , message]) => message as RequestTrace);
    expect([...new Set(traces.map(({ name, path }) => `${name} ${path}`))]).toEqual([
      'uploads.create /v1/uploads',
      'uploads.put undefined',
      'uploads.complete /v1/uploads/complete',
    ]);
  });
});
