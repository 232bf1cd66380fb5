import { describe, expect, it, vi } from 'vitest';
import type { Hooks, Logger } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { HOOKS } from '../../src/transport/events.js';
import { advanceUntil } from '../support/advance-until.js';
import { fakeTimers } from '../support/fake-timers.js';
import { created, json, PROMPT, stubbed } from './support.js';

fakeTimers();

/** A failure, a 429, and a job. */
const STEPS = [
  () => json({}, { status: 500, headers: { 'x-request-id': 'r1' } }),
  () => json({}, { status: 429, headers: { 'retry-after': '3' } }),
  () => json(created(), { headers: { 'x-request-id': 'r3' } }),
];

describe('hooks', () => {
  it('report attempts, retries, and waits in the order in which they happen', async () => {
    const events: [string, unknown][] = [];
    const hooks: Hooks = {
      onRequest: (event) => events.push(['request', event]),
      onResponse: (event) => events.push(['response', event]),
      onRetry: (event) => events.push(['retry', event]),
      onWait: (event) => events.push(['wait', event]),
    };
    const { client } = stubbed(STEPS, { hooks });
    await advanceUntil(client.videos.create(PROMPT));
    const callId = expect.stringMatching(/^[0-9a-f-]{36}$/);
    const idempotencyKey = expect.any(String);
    const call = { callId, method: 'POST', path: '/v1/videos', limit: 'videos.create', limitWaitMs: 0, idempotencyKey };
    expect(new Set(events.map(([, event]) => Reflect.get(Object(event), 'callId'))).size).toBe(1);
    const later = { ...call, limitWaitMs: expect.any(Number) };
    const body = { receivedBytes: created().length, quotedTokens: 4 };
    expect(events).toEqual([
      ['request', { ...call, attempt: 1 }],
      ['response', { ...call, attempt: 1, status: 500, requestId: 'r1', durationMs: 0, error: expect.any(Error) }],
      ['retry', { ...call, attempt: 1, delayMs: expect.any(Number), error: expect.any(Error) }],
      ['request', { ...call, attempt: 2 }],
      ['response', { ...call, attempt: 2, status: 429, requestId: undefined, durationMs: 0, error: expect.any(Error) }],
      ['wait', { callId, limit: 'videos.create', reason: 'pause', queued: 1, waitMs: expect.any(Number) }],
      ['request', { ...later, attempt: 3 }],
      ['response', { ...later, attempt: 3, status: 200, requestId: 'r3', durationMs: 0, error: undefined, ...body }],
    ]);
    // The service requested 3 s, and the limit was paused for that long.
    const waits = events.map(([, event]) => Number(Reflect.get(Object(event), 'limitWaitMs') ?? 0));
    expect(waits.at(-1)).toBeGreaterThanOrEqual(3_000);
    expect(waits.at(-1)).toBeLessThan(4_000);
  });
});

it('hooks.onJob works in a runtime without diagnostics channels', async () => {
  vi.useRealTimers();
  vi.spyOn(process, 'getBuiltinModule').mockReturnValue(undefined);
  const phases: string[] = [];
  const client = createSandbox().client({ hooks: { onJob: ({ phase }) => void phases.push(phase) } });
  const job = await client.videos.createAndWait(PROMPT);
  vi.restoreAllMocks();
  expect([job.status, ...phases]).toEqual(['completed', 'accepted', 'final']);
});

describe('the logger', () => {
  function createRecorder(): { logger: Logger; lines: string[] } {
    const lines: string[] = [];
    const log = (level: string) => (message: string) => void lines.push(`${level} ${message}`);
    return { lines, logger: { error: log('error'), warn: log('warn'), info: log('info'), debug: log('debug') } };
  }

  it.each([
    ['debug', 8],
    ['info', 2],
    ['warn', 0],
    ['off', 0],
  ] as const)('at %s receives %i messages for a create with one failure and one wait', async (logLevel, count) => {
    const { logger, lines } = createRecorder();
    const { client } = stubbed(STEPS, { logger, logLevel });
    await advanceUntil(client.videos.create(PROMPT));
    expect(lines).toHaveLength(count);
    if (count > 0) expect(lines.join('\n')).toMatch(/retrying POST \/v1\/videos in \d+ ms/);
  });

  it('receives one line per step, and errors as text', async () => {
    const { logger, lines } = createRecorder();
    const fields: unknown[] = [];
    const debug = (message: string, data?: object) => {
      logger.debug(message);
      fields.push(data);
    };
    const lost = () => Promise.reject(new TypeError('fetch failed'));
    const { client } = stubbed([lost, () => json(created())], { logger: { ...logger, debug }, logLevel: 'debug' });
    await advanceUntil(client.videos.create(PROMPT));
    expect(lines.map((line) => line.replace(/\d+ ms/, 'some ms'))).toEqual([
      'debug gen-client: POST /v1/videos',
      'debug gen-client: POST /v1/videos failed',
      'info gen-client: retrying POST /v1/videos in some ms',
      'debug gen-client: POST /v1/videos',
      'debug gen-client: POST /v1/videos 200',
    ]);
    expect(fields[1]).toMatchObject({ attempt: 1, error: expect.stringMatching(/^ConnectionError: ./) });
    expect(fields[3]).toMatchObject({ attempt: 2, status: 200, error: undefined });
  });

  it('receives a warning with the name and error of a hook that throws', async () => {
    const { logger, lines } = createRecorder();
    const throwError = () => {
      throw new Error('no disk');
    };
    const hooks: Hooks = Object.fromEntries(HOOKS.map((name) => [name, throwError]));
    const { client } = stubbed(STEPS, { hooks, logger });
    await advanceUntil(client.videos.create(PROMPT));
    for (const name of HOOKS) expect(lines).toContain(`warn gen-client: hooks.${name} failed: no disk`);
  });
});
