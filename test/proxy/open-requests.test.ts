// The limit of a user's open requests, and requests of pages that disconnect.
import { expect, it } from 'vitest';
import { OpenRequests } from '../../src/adapters/proxy/open-requests.js';
import { ANN, type App, INPUT, isHeld, KEY, openApp, pagePost, sendBytes, watchFrom } from './support.js';

const FILE = { type: 'image/png', size: 10 };
const MINUTE_MS = 60_000;
const TOO_MANY = {
  status: 429,
  body: { code: 'rate_limited', message: 'Too many open requests. Try again later.' },
};

const uploads = ({ sandbox }: App) => sandbox.requests.filter(({ path }) => path === '/v1/uploads').length;

/** Opens an app that has used the minute's creates and uploads. */
async function openAtLimit() {
  const app = openApp({}, { clock: 'manual', jobDurationMs: 30 * MINUTE_MS });
  // Six users, because each can have at most 16 unfinished uploads.
  const userOf = (index: number) => ({ user: `zoe${index % 6}` });
  await Promise.all([
    ...Array.from({ length: 60 }, (_, index) => app.post('upload', FILE, userOf(index))),
    ...Array.from({ length: 20 }, (_, index) => app.post('videos', { key: `${KEY}${index}`, input: INPUT }, userOf(0))),
  ]);
  return app;
}

it('allows a user 64 open creates, uploads, and waits in total', async () => {
  const app = await openAtLimit();
  const ticket = await app.proxy.ticket(app.sandbox.jobs[0]?.id ?? '', ANN);
  await app.post('watch', { ticket });
  const held = [
    ...Array.from({ length: 28 }, (_, index) => pagePost(app, 'videos', { key: `${KEY}${index}`, input: INPUT })),
    ...Array.from({ length: 16 }, () => pagePost(app, 'upload', FILE)),
    ...Array.from({ length: 20 }, () => watchFrom(app, ticket)),
  ];
  expect(await isHeld(Promise.race(held.map(({ response }) => response)))).toBe(true);
  expect(await app.post('videos', { key: `${KEY}more`, input: INPUT })).toMatchObject(TOO_MANY);
  expect(await app.post('upload', FILE)).toMatchObject(TOO_MANY);
  expect(await app.post('watch', { ticket, seen: 'processing' })).toMatchObject(TOO_MANY);
  expect((await sendBytes(app, 'x.y', 'x')).status).toBe(429);
  // Other users aren't affected.
  const other = await app.proxy.ticket(app.sandbox.jobs[1]?.id ?? '', { id: 'ben' });
  expect((await app.post('watch', { ticket: other }, { user: 'ben' })).status).toBe(200);
  for (const { disconnect } of held) disconnect();
});

it("neither sends a disconnected page's upload nor reports it as an error", async () => {
  const app = await openAtLimit();
  const uploadsBefore = uploads(app);
  const posts = Array.from({ length: 16 }, () => pagePost(app, 'upload', FILE));
  expect(await isHeld(Promise.race(posts.map(({ response }) => response)))).toBe(true);
  for (const { disconnect } of posts) disconnect();
  for (const { response } of posts) expect((await response).status).toBe(499);
  await app.sandbox.advance(5 * MINUTE_MS);
  expect([uploads(app) - uploadsBefore, app.errors]).toEqual([0, []]);
  expect((await app.post('upload', FILE)).status).toBe(200);
});

it('continues a create after its page disconnects, and its key returns the job', async () => {
  const app = await openAtLimit();
  const { response, disconnect } = pagePost(app, 'videos', { key: KEY, input: INPUT });
  expect(await isHeld(response)).toBe(true);
  disconnect();
  const repeated = app.post('videos', { key: KEY, input: INPUT });
  await app.sandbox.advance(2 * MINUTE_MS);
  expect((await repeated).status).toBe(200);
  expect(app.sandbox.jobs).toHaveLength(21);
});

it('counts a wait for a minute after its page disconnects, and once if the page returns', async () => {
  const app = openApp({}, { clock: 'manual', jobDurationMs: 30 * MINUTE_MS });
  const tickets = Array.from({ length: 65 }, async () => {
    const { job } = await app.client.images.create(INPUT);
    return app.proxy.ticket(job, ANN);
  });
  const [last = '', ...others] = await Promise.all(tickets);
  const watchBriefly = async (ticket: string) => {
    const { response, disconnect } = watchFrom(app, ticket);
    disconnect();
    return (await response).status;
  };
  for (let times = 0; times < 2; times++) {
    for (const ticket of others) expect(await watchBriefly(ticket)).toBe(200);
    expect(await watchBriefly(last)).toBe(429);
  }
  await app.sandbox.advance(MINUTE_MS + 1_000);
  expect(await watchBriefly(last)).toBe(200);
});

it('counts a request that ends without a signal, as on Workers, for at most ten minutes', () => {
  let nowMs = 0;
  const open = new OpenRequests(() => nowMs, { noun: 'open requests', max: 64, maxAgeMs: 10 * MINUTE_MS });
  for (let times = 0; times < 64; times++) open.acquire('ann');
  nowMs = 10 * MINUTE_MS - 1;
  expect(() => open.acquire('ann')).toThrow('Too many open requests. Try again later.');
  nowMs += 1;
  const request = open.acquire('ann');
  request.release();
  request.release();
  for (let times = 0; times < 64; times++) open.acquire('ann');
  expect(() => open.acquire('ann')).toThrow('Too many open requests.');
});
