import { expect, it } from 'vitest';
import { LoopbackService } from './loopback-service.js';
import { createClient, createMovie, openPerTest, quickPauses } from './support.js';

quickPauses();

const MOVIE = createMovie(1_000_000);
const service = openPerTest(new LoopbackService());

const open = (options = {}) => createClient(service).jobs.output('job_1', { resume: true, ...options });

it('a resumable output has the headers of the file, and its body resumes after interruptions', async () => {
  const { etag } = service.addOutput('job_1', { body: MOVIE, cutAfter: [100, 0, 500_000] });
  const response = await open();
  expect([response.status, response.url]).toEqual([200, `${service.baseUrl}/v1/jobs/job_1/output`]);
  const headers = { 'content-length': `${MOVIE.length}`, 'content-type': 'video/mp4', etag };
  expect(Object.fromEntries(response.headers)).toMatchObject(headers);
  expect(await response.bytes()).toEqual(MOVIE);
  const resumed = service.downloads.slice(1).map(({ headers }) => [headers.range, headers['if-range']]);
  expect(resumed).toEqual(['bytes=100-', 'bytes=100-', 'bytes=500100-'].map((range) => [range, etag]));
});

it('a resumable output omits headers about encoded bytes, because the bytes are decoded', async () => {
  const encoded = { 'content-encoding': 'gzip', 'content-length': '99', 'accept-ranges': 'bytes', etag: '"a"' };
  const fetch = async (_: unknown, init?: RequestInit) =>
    init?.method === 'HEAD'
      ? new Response(null, { headers: { 'content-length': '4' } })
      : new Response('0123', { headers: encoded });
  const response = await createClient(service, { fetch }).jobs.output('job_1', { resume: true });
  expect(Object.fromEntries(response.headers)).toEqual({
    etag: 'W/"a"',
    'content-type': expect.stringContaining('text/plain'),
  });
  expect(await response.text()).toBe('0123');
});

it("an output isn't resumed by default", async () => {
  service.addOutput('job_1', { body: MOVIE, cutAfter: [500_000] });
  const plain = await createClient(service).jobs.output('job_1');
  await expect(plain.arrayBuffer()).rejects.toMatchObject({ name: 'ConnectionError' });
});

it('a resumable output stays within the requested range', async () => {
  service.addOutput('job_1', { body: MOVIE, cutAfter: [1_000, 2_000] });
  const response = await open({ range: { start: 10_000, end: 19_999 } });
  expect([response.status, response.headers.get('content-range')]).toEqual([206, 'bytes 10000-19999/1000000']);
  expect(await response.bytes()).toEqual(MOVIE.slice(10_000, 20_000));
  const ranges = service.downloads.map(({ headers }) => headers.range);
  expect(ranges).toEqual(['bytes=10000-19999', 'bytes=11000-19999', 'bytes=13000-19999']);
});
