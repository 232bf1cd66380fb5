// `client.request`: endpoints without a method.
import { describe, expect, it } from 'vitest';
import type { RawRequest } from '../../src/client/endpoint.js';
import type { RequestEvent } from '../../src/index.js';
import { BASE_URL, json, rejection, stubbed } from '../transport/support.js';

/** Creates a client that records each call's rate limit. */
function recordLimits(response: unknown = {}) {
  const limits: string[] = [];
  const onRequest = ({ limit }: RequestEvent) => void (limit !== undefined && limits.push(limit));
  const { client, requests } = stubbed(() => json(JSON.stringify(response)), { hooks: { onRequest } });
  return { client, requests, limits };
}

describe('a raw request', () => {
  it.each<[RawRequest['method'], string, string | undefined]>([
    ['POST', '/v1/videos', 'videos.create'],
    ['POST', '/v1/videos?dry_run=1', 'videos.create'],
    ['POST', '/v1/videos#note', 'videos.create'],
    ['GET', '/v1/videos', undefined],
    ['POST', '/v1/videos/job_1', undefined],
    ['POST', '/v1/video-edits', 'videoEdits.create'],
    ['POST', '/v1/images', 'images.create'],
    ['POST', '/v1/characters', 'characters.create'],
    ['GET', '/v1/characters', undefined],
    ['GET', '/v1/jobs/job_1', 'jobs.get'],
    ['GET', '/v1/jobs/job_1?fields=status/progress', 'jobs.get'],
    ['GET', '/v1/jobs', undefined],
    ['POST', '/v1/jobs/job_1', undefined],
    ['GET', '/v1/jobs/job_1/output', 'jobs.output'],
    ['GET', '/v1/jobs/job_1/output?size=small', 'jobs.output'],
    ['GET', '/v1/jobs/job_1/output/frames', undefined],
    ['GET', '/v1/jobs/job_1/other', undefined],
    ['POST', '/v1/uploads', 'uploads.create'],
    ['POST', '/v1/uploads/complete', undefined],
    ['PUT', '/v1/uploads?upload_id=upl_1', 'uploads.put'],
    ['PUT', '/v1/uploads/upl_1', undefined],
    ['DELETE', '/v1/uploads/upl_1', 'uploads.delete'],
    ['DELETE', '/v1/uploads', undefined],
    ['DELETE', '/v1/uploads/upl_1/parts', undefined],
  ])('%s %s counts against the rate limit %s', async (method, path, limit) => {
    const { client, limits, requests } = recordLimits();
    await client.request({ method, path });
    expect(limits).toEqual(limit === undefined ? [] : [limit]);
    expect([requests[0]?.method, requests[0]?.url]).toEqual([method, BASE_URL + path]);
  });

  it('appends its query without undefined values, and sends its body as JSON', async () => {
    const { client, requests } = recordLimits({ data: { url: 'https://a.test/speech.mp3' } });
    const query = { voice: 'ann b', speed: 2, draft: true, seed: undefined };
    const response = await client.request({ method: 'POST', path: '/v1/speech', query, body: { text: 'x' } });
    expect(response).toEqual({ url: 'https://a.test/speech.mp3' });
    expect(requests).toMatchObject([
      { method: 'POST', url: `${BASE_URL}/v1/speech?voice=ann+b&speed=2&draft=true`, body: '{"text":"x"}' },
    ]);
  });

  it.each<[string, object, string]>([
    ['a misspelled field', { method: 'GET', url: '/v1/x' }, 'request has no option "url".'],
    ['a GET with a body', { method: 'GET', path: '/v1/x', body: {} }, 'A GET has no body'],
    [
      'a string as its query',
      { method: 'GET', path: '/v1/x', query: 'a=1' },
      'query must be a plain object of strings, numbers, booleans, and arrays of these, not a string.',
    ],
  ])('with %s is rejected before it is sent', async (_, request, message) => {
    const { client, requests } = recordLimits();
    const error = await rejection((async () => client.request(request as RawRequest))());
    expect(error).toMatchObject({ name: 'GenError', message: expect.stringContaining(message) });
    expect(requests).toEqual([]);
  });
});
