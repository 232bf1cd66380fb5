// Errors for a rejected file and for a response without a file.
import { describe, expect, it } from 'vitest';
import { outputType, parseOutputResponse } from '../../src/downloading/output.js';
import { JobFile } from '../../src/downloading/output-source.js';
import { APIError } from '../../src/errors/index.js';
import { CLOCK } from '../../src/runtime/clock.js';
import { rejection } from '../transport/support.js';

const apiError = (status: number, code = `http_${status}`) =>
  new APIError('no', { status, code, recovery: 'retry', method: 'GET', url: '/x', attempts: 1 });

describe("a response isn't a file", () => {
  it.each([
    ['text/html; charset=utf-8', 'text/html instead of the file'],
    ['application/problem+json', 'application/problem+json instead of the file'],
    ['text/xml', 'text/xml instead of the file'],
  ])('if its type is %s', (type, problem) => {
    expect(() => outputType('job_1', type, new Uint8Array())).toThrow(
      expect.objectContaining({ code: 'not_media', message: expect.stringContaining(problem) }),
    );
  });

  it.each([
    ['has no body', new Response(null, { status: 204 })],
    ['has an empty body', new Response('', { headers: { 'content-length': '0' } })],
  ])('if it %s', (_, response) => {
    expect(() => parseOutputResponse('job_1', response)).toThrow(expect.objectContaining({ code: 'not_media' }));
  });
});

describe('a rejected file', () => {
  const now = Date.parse('2026-01-02T00:00:00.000Z');
  const [past, future] = ['2026-01-01T00:00:00.000Z', '2026-01-03T00:00:00.000Z'];
  const explainedError = async (cause: unknown, job: object | undefined, signal?: AbortSignal) => {
    const get = async () => job ?? Promise.reject(new Error('no connection'));
    const client = { jobs: { get }, [CLOCK]: { now: () => now, after: () => () => {} } };
    return rejection(new JobFile(client as never, 'job_1', { signal }).explainErrors(() => Promise.reject(cause)));
  };

  it.each<[unknown, object | undefined, object | undefined]>([
    [apiError(410), undefined, { code: 'output_expired', expiredAt: undefined }],
    [apiError(410), { providerOutputExpiresAt: future }, { code: 'output_expired', expiredAt: future }],
    [apiError(403), { providerOutputExpiresAt: past }, { code: 'output_expired', expiredAt: past }],
    [apiError(403), { providerOutputExpiresAt: new Date(now).toISOString() }, { code: 'output_expired' }],
    [apiError(403), { providerOutputExpiresAt: future, status: 'completed' }, undefined],
    [apiError(404, 'link_Expired'), undefined, { code: 'output_expired' }],
    [apiError(404), undefined, undefined],
    [apiError(500), { status: 'failed' }, undefined],
    [new Error('expired'), { status: 'failed' }, undefined],
    [apiError(409), { status: 'canceled' }, { code: 'job_without_output' }],
    [apiError(404), { status: 'processing' }, { code: 'job_not_finished' }],
  ])('with %s and the job %j is reported as %j', async (cause, job, expected) => {
    const error = await explainedError(cause, job);
    if (expected === undefined) expect(error).toBe(cause);
    else expect(error).toMatchObject({ name: 'DownloadError', jobId: 'job_1', cause, ...expected });
  });

  it("rejects with the abort's reason if the call was aborted", async () => {
    expect(await explainedError(apiError(404), { status: 'processing' }, AbortSignal.abort('enough'))).toBe('enough');
  });
});
