// What each refused file is told as, what an answer without a file is, and the calls of a run.
import { describe, expect, it } from 'vitest';
import { seeCall, sendRunCreate } from '../../src/client/run-calls.js';
import { readOutputAnswer, refuseNonMedia } from '../../src/downloading/output.js';
import { explainRefusal } from '../../src/downloading/output-source.js';
import { APIError, type DownloadError } from '../../src/errors/index.js';
import { shortenKey } from '../../src/transport/idempotency.js';
import { rejection } from '../transport/support.js';

const bytesOf = (text: string) => new TextEncoder().encode(text);
const refusal = (status: number, Class = APIError, code = `http_${status}`) =>
  new Class('no', { status, code, recovery: 'retry', method: 'GET', url: '/x', attempts: 1 });

describe('an answer is no file', () => {
  const said = (type: string | undefined, text: string) => {
    try {
      refuseNonMedia('job_1', type, bytesOf(text));
    } catch (error) {
      expect(error).toMatchObject({ name: 'DownloadError', code: 'not_media', jobId: 'job_1' });
      return (error as Error).message;
    }
    return undefined;
  };

  it.each<[string | undefined, string, string]>([
    ['text/html; charset=utf-8', 'x', 'an HTML page'],
    ['application/xhtml+xml', 'x', 'an HTML page'],
    [undefined, '  <!DOCTYPE html>', 'an HTML page'],
    ['video/mp4', '<!-- a --> <?xml version="1"?><html lang="en">', 'an HTML page'],
    ['application/xml', 'x', 'XML'],
    ['text/xml', '', 'XML'],
    [
      undefined,
      '<?xml version="1"?><Error><Code>NoSuchKey</Code></Error>',
      'XML instead of the file of job job_1 (NoSuchKey)',
    ],
    ['application/json', 'x', 'JSON'],
    ['application/problem+json', 'x', 'JSON'],
    ['text/json', 'x', 'JSON'],
    ['video/mp4', '{"error" : "expired"}', 'JSON instead of the file of job job_1 (expired)'],
    [undefined, '{ "a": {"code":"gone.now"}}', 'JSON instead of the file of job job_1 (gone.now)'],
    [undefined, '{}', 'JSON'],
    [undefined, '{', 'JSON'],
    [undefined, '["a"', 'JSON'],
    [undefined, '<head>', 'an HTML page'],
    [undefined, '<body class="a">', 'an HTML page'],
    [undefined, '<?xml version="1"?><svgs>', 'XML'],
    [undefined, ' [ {', 'JSON'],
    [undefined, '[]', 'JSON'],
  ])('of the type %s that begins with %j: %s', (type, text, what) => {
    const end = what.includes('instead') ? '' : ' instead of the file of job job_1';
    expect(said(type, text)).toBe(`The service answered with ${what}${end}.`);
  });

  it.each<[string | undefined, string]>([
    ['image/svg+xml', '<?xml version="1"?><svg xmlns="x">'],
    ['image/svg+xml', '<?xml version="1"?><svg>'],
    ['text/html5', 'x'],
    ['x-text/html', 'x'],
    ['application/jsonl', 'x'],
    ['video/mp4', 'x<html>'],
    ['video/mp4', 'x<?xml version="1"?>'],
    ['video/mp4', 'x {"error":"expired"}'],
    ['video/mp4', '<htmlish'],
    ['video/mp4', '{x'],
    ['video/mp4', '[1'],
    ['video/mp4', '<!-- never ends'],
    ['video/mp4', `${'x'.repeat(512)}<html>`],
    ['text/plain', 'a'],
    [undefined, ''],
  ])('but one of the type %s that begins with %j is', (type, text) => {
    expect(said(type, text)).toBeUndefined();
  });

  it.each([200, 204, 205, 304])('of the status %i without a body', (status) => {
    const message = `The service answered with ${status} and no file for job job_1.`;
    expect(() => readOutputAnswer('job_1', new Response(null, { status }))).toThrow(
      expect.objectContaining({ name: 'DownloadError', message, jobId: 'job_1', code: 'not_media' }),
    );
  });

  it('of no byte', () => {
    const message = 'The service answered with an empty file for job job_1.';
    expect(() => readOutputAnswer('job_1', new Response('', { headers: { 'content-length': '0' } }))).toThrow(
      expect.objectContaining({ name: 'DownloadError', message, jobId: 'job_1', code: 'not_media' }),
    );
  });

  it('where its first bytes are not known only by its type', () => {
    expect(() => refuseNonMedia('job_1', 'text/html', undefined)).toThrow('an HTML page');
    expect(() => refuseNonMedia('job_1', 'video/mp4', undefined)).not.toThrow();
  });
});

describe('a refused file', () => {
  const now = Date.parse('2026-01-02T00:00:00.000Z');
  const [past, future] = ['2026-01-01T00:00:00.000Z', '2026-01-03T00:00:00.000Z'];
  const told = async (cause: unknown, job: object | undefined) => {
    const error = await explainRefusal({ jobId: 'job_1', cause, job: async () => job as never, now });
    if (error === cause) return 'as it is';
    const { message, code, expiredAt, cause: inner } = error as DownloadError;
    expect(inner).toBe(cause);
    return [message, code, expiredAt];
  };
  const expired = (when: string, at?: string) => [
    `The link to the file of job job_1 ${when}. Files are kept for a while only: save each one when its job completes.`,
    'output_expired',
    at,
  ];

  it.each<[string, unknown, object | undefined, unknown]>([
    ['410', refusal(410), undefined, expired('has expired')],
    ['410', refusal(410), { providerOutputExpiresAt: future }, expired(`expired at ${future}`, future)],
    ['410', refusal(410), { providerOutputExpiresAt: null }, expired('has expired')],
    ['403', refusal(403), { providerOutputExpiresAt: past }, expired(`expired at ${past}`, past)],
    [
      '403 at that very time',
      refusal(403),
      { providerOutputExpiresAt: new Date(now).toISOString(), status: 'completed' },
      expired('expired at 2026-01-02T00:00:00.000Z', '2026-01-02T00:00:00.000Z'),
    ],
    ['403 later than now', refusal(403), { providerOutputExpiresAt: future, status: 'completed' }, 'as it is'],
    ['code', refusal(404, APIError, 'link_Expired'), undefined, expired('has expired')],
    ['404', refusal(404), undefined, 'as it is'],
    ['404', refusal(404), { status: 'completed' }, 'as it is'],
    ['500', refusal(500), { status: 'failed' }, 'as it is'],
    ['other', new Error('expired'), { status: 'failed' }, 'as it is'],
    ...['failed', 'canceled', 'blocked'].map((status): [string, unknown, object, unknown] => [
      '409',
      refusal(409),
      { status },
      [`Job job_1 has no file: its status is ${status}.`, 'job_without_output', undefined],
    ]),
    [
      '404',
      refusal(404),
      { status: 'processing' },
      [
        'Job job_1 has no file: its status is processing. Wait for it with waitForJob first.',
        'job_not_finished',
        undefined,
      ],
    ],
  ])('with %s is told by its job', async (_, cause, job, expected) => {
    expect(await told(cause, job)).toEqual(expected);
  });
});

describe('a create of a run', () => {
  it('goes to its namespace under the key of the run, with the model of the run or its own', async () => {
    const sent: unknown[] = [];
    const namespace = (call: string) => ({
      create: async (...words: unknown[]) => void sent.push([call, ...words]),
    });
    const calls = ['images', 'videos', 'videoEdits', 'characters'];
    const client = Object.fromEntries(calls.map((call) => [call, namespace(call)])) as never;
    const params = { prompt: 'a', model: 'm', idempotency_key: 'own' };
    await sendRunCreate(client, { call: 'images', params, key: 'k', model: null });
    await sendRunCreate(client, { call: 'videoEdits', params, key: 'k', model: 'n' }, { maxRetries: 2 });
    expect(sent).toEqual([
      ['images', { prompt: 'a', model: 'm' }, { idempotencyKey: 'k' }],
      ['videoEdits', { prompt: 'a', model: 'n' }, { maxRetries: 2, idempotencyKey: 'k' }],
    ]);
  });

  it('comes to its job, or to a failure of this package; what else is thrown is no outcome', async () => {
    const job = { id: 'job_1', status: 'queued' } as never;
    expect(await seeCall(async () => job)).toEqual({ event: { type: 'job', job }, job });
    const refused = refusal(400);
    expect(await seeCall(() => Promise.reject(refused))).toEqual({
      event: { type: 'failed', failure: expect.any(Object) },
      error: refused,
    });
    const defect = new TypeError('x is undefined');
    expect(await rejection(seeCall(() => Promise.reject(defect)))).toBe(defect);
  });

  it('has its key kept to 200 characters, and a fingerprint in place of a longer one', () => {
    const [fits, long] = ['k'.repeat(200), 'k'.repeat(201)];
    expect(shortenKey(fits)).toBe(fits);
    expect(shortenKey(long).length).toBeLessThan(200);
    expect(shortenKey(long)).toBe(shortenKey(long));
    expect(shortenKey(long)).not.toBe(shortenKey(`${long}k`));
  });
});
