import { afterEach, beforeEach, expect, it } from 'vitest';
import { LoopbackService } from './loopback-service.js';
import { makeClient, quickPauses } from './support.js';

quickPauses();

const MOVIE = new Uint8Array(1_000_000).map((_, at) => (at * 13) % 249);

let service: LoopbackService;
beforeEach(async () => {
  service = await LoopbackService.start();
});
afterEach(() => service.close());

const open = (options = {}) => makeClient(service).jobs.output('job_1', { resume: true, ...options });
const bytes = async (response: Response) => new Uint8Array(await response.arrayBuffer());
const gets = () => service.seen.filter(({ method }) => method === 'GET');

it('returns a response with headers and length, whose body resumes after interruptions', async () => {
  const { etag } = service.addOutput('job_1', { body: MOVIE, cuts: [100, 0, 500_000] });
  const response = await open();
  expect([response.status, response.url]).toEqual([200, `${service.baseUrl}/v1/jobs/job_1/output`]);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-length': `${MOVIE.length}`,
    'content-type': 'video/mp4',
    etag,
  });
  expect(await bytes(response)).toEqual(MOVIE);
  expect(
    gets()
      .slice(1)
      .map(({ headers }) => [headers.range, headers['if-range']]),
  ).toEqual([
    ['bytes=100-', etag],
    ['bytes=100-', etag],
    ['bytes=500100-', etag],
  ]);
});

it('omits headers about encoded bytes, because the bytes are decoded', async () => {
  const encoded = { 'content-encoding': 'gzip', 'content-length': '99', 'accept-ranges': 'bytes', etag: '"a"' };
  const fetch = async (_: unknown, init?: RequestInit) =>
    init?.method === 'HEAD'
      ? new Response(null, { headers: { 'content-length': '4' } })
      : new Response('0123', { headers: encoded });
  const response = await makeClient(service, { fetch }).jobs.output('job_1', { resume: true });
  expect(Object.fromEntries(response.headers)).toEqual({
    etag: 'W/"a"',
    'content-type': expect.stringContaining('text/plain'),
  });
  expect(await response.text()).toBe('0123');
});

it("doesn't resume unless requested", async () => {
  service.addOutput('job_1', { body: MOVIE, cuts: [500_000] });
  const plain = await makeClient(service).jobs.output('job_1');
  await expect(plain.arrayBuffer()).rejects.toMatchObject({ name: 'ConnectionError' });
});

it('resumes within the requested range', async () => {
  service.addOutput('job_1', { body: MOVIE, cuts: [1_000, 2_000] });
  const response = await open({ range: { start: 10_000, end: 19_999 } });
  expect([response.status, response.headers.get('content-range')]).toEqual([206, 'bytes 10000-19999/1000000']);
  expect(await bytes(response)).toEqual(MOVIE.slice(10_000, 20_000));
  expect(gets().map(({ headers }) => headers.range)).toEqual([
    'bytes=10000-19999',
    'bytes=11000-19999',
    'bytes=13000-19999',
  ]);
});

it('can be cloned', async () => {
  service.addOutput('job_1', { body: MOVIE, cuts: [400_000] });
  const [one, two] = (await open()).body?.tee() ?? [];
  expect((await new Response(one).arrayBuffer()).byteLength + (await new Response(two).arrayBuffer()).byteLength).toBe(
    2_000_000,
  );
});
