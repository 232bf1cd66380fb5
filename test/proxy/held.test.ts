// A user's open requests count together, and nothing is sent for a page that has disconnected.
import { expect, it } from 'vitest';
import { OpenRequests } from '../../src/adapters/proxy/open-requests.js';
import { type App, isHeld, KEY, openApp, pagePost, watchFrom } from './support.js';

const INPUT = { prompt: 'a fox' };
const FILE = { type: 'image/png', size: 10 };
const MINUTE_MS = 60_000;
const TOO_MANY = {
  status: 429,
  body: { code: 'rate_limited', message: 'Too many open requests. Try again later.' },
};

const uploads = ({ sandbox }: App) => sandbox.requests.filter(({ path }) => path === '/v1/uploads').length;

/** An app whose minute of creates and uploads is used up. */
async function openBusy() {
  const app = openApp({}, { clock: 'manual', jobDurationMs: 30 * MINUTE_MS });
  const as = { user: 'zoe' };
  // A user begins 16 uploads at most and finishes them.
  const each = (index: number) => ({ user: `zoe${index % 6}` });
  await Promise.all(Array.from({ length: 60 }, (_, index) => app.post('upload', FILE, each(index))));
  await Promise.all(
    Array.from({ length: 20 }, (_, made) => app.post('videos', { key: `${KEY}${made}`, input: INPUT }, as)),
  );
  return app;
}

it('creates, uploads, bytes, and waits that a user holds open count together: 64, and then 429', async () => {
  const app = await openBusy();
  const ticket = await app.proxy.ticket(app.sandbox.jobs[0]?.id ?? '', { id: 'ann' });
  await app.post('watch', { ticket });
  const held = [
    ...Array.from({ length: 28 }, (_, index) => pagePost(app, 'videos', { key: `${KEY}${index}`, input: INPUT })),
    ...Array.from({ length: 16 }, () => pagePost(app, 'upload', FILE)),
    ...Array.from({ length: 20 }, () => watchFrom(app, ticket)),
  ];
  expect(await isHeld(Promise.race(held.map(({ answer }) => answer)))).toBe(true);
  expect(await app.post('videos', { key: `${KEY}more`, input: INPUT })).toMatchObject(TOO_MANY);
  expect(await app.post('upload', FILE)).toMatchObject(TOO_MANY);
  expect(await app.post('watch', { ticket, seen: 'processing' })).toMatchObject(TOO_MANY);
  const headers = { 'x-gen-page': '1', 'x-session': 'ann', 'x-gen-ticket': 'x.y' };
  expect((await app.ask('bytes', { method: 'POST', headers, body: 'x' })).status).toBe(429);
  // Another user is not concerned.
  const other = await app.proxy.ticket(app.sandbox.jobs[1]?.id ?? '', { id: 'ben' });
  expect((await app.post('watch', { ticket: other }, { user: 'ben' })).status).toBe(200);
  for (const { leave } of held) leave();
});

it("an upload whose page has disconnected isn't sent, and isn't reported as a failure", async () => {
  const app = await openBusy();
  const before = uploads(app);
  const asked = Array.from({ length: 16 }, () => pagePost(app, 'upload', FILE));
  expect(await isHeld(Promise.race(asked.map(({ answer }) => answer)))).toBe(true);
  for (const { leave } of asked) leave();
  expect(new Set((await Promise.all(asked.map(({ answer }) => answer))).map(({ status }) => status))).toEqual(
    new Set([499]),
  );
  await app.sandbox.advance(5 * MINUTE_MS);
  expect([uploads(app) - before, app.errors]).toEqual([0, []]);
  expect((await app.post('upload', FILE)).status).toBe(200);
});

it('a create whose page has disconnected continues, and the page finds its job by the key when it returns', async () => {
  const app = await openBusy();
  const { answer, leave } = pagePost(app, 'videos', { key: KEY, input: INPUT });
  expect(await isHeld(answer)).toBe(true);
  leave();
  const again = app.post('videos', { key: KEY, input: INPUT });
  await app.sandbox.advance(2 * MINUTE_MS);
  expect((await again).status).toBe(200);
  expect(app.sandbox.jobs).toHaveLength(21);
});

it('a wait without a viewer counts for another minute, and not twice if the viewer returns', async () => {
  const app = openApp({}, { clock: 'manual', jobDurationMs: 30 * MINUTE_MS });
  const tickets = Array.from({ length: 65 }, async () => {
    const { job } = await app.client.images.create(INPUT);
    return app.proxy.ticket(job, { id: 'ann' });
  });
  const [last = '', ...others] = await Promise.all(tickets);
  const look = async (ticket: string) => {
    const { answer, leave } = watchFrom(app, ticket);
    leave();
    return (await answer).status;
  };
  for (let times = 0; times < 2; times++) {
    for (const ticket of others) expect(await look(ticket)).toBe(200);
    expect(await look(last)).toBe(429);
  }
  await app.sandbox.advance(MINUTE_MS + 1_000);
  expect(await look(last)).toBe(200);
});

it('a request that ends silently, as on Workers, counts for at most ten minutes', () => {
  let nowMs = 0;
  const open = new OpenRequests(() => nowMs, { what: 'open requests', max: 64, maxAgeMs: 10 * MINUTE_MS });
  for (let times = 0; times < 64; times++) open.take('ann');
  nowMs = 10 * MINUTE_MS - 1;
  expect(() => open.take('ann')).toThrow('Too many open requests. Try again later.');
  nowMs += 1;
  const request = open.take('ann');
  request.release();
  request.release();
  for (let times = 0; times < 64; times++) open.take('ann');
  expect(() => open.take('ann')).toThrow('Too many open requests.');
});
