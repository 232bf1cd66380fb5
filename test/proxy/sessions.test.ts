// A page is bound to the session in which it was loaded: another user who signs in makes nothing of its asks.
import { expect, it } from 'vitest';
import { KEY, openApp } from './support.js';

const ASK = { prompt: 'a fox' };

it('a create that was asked for in the session of another user is refused, and makes nothing', async () => {
  const app = openApp();
  const { status, body } = await app.post('session', {});
  expect([status, Object.keys(body)]).toEqual([200, ['ticket']]);
  const create = { key: KEY, ask: ASK, session: body.ticket };
  expect(await app.post('videos', create, { user: 'ben' })).toMatchObject({
    status: 403,
    body: { code: 'other_user', message: 'This was asked for in another session. Ask again.' },
  });
  expect([app.sandbox.jobs, app.errors]).toEqual([[], []]);
  expect((await app.post('videos', create)).status).toBe(200);
  // Also where its job is known.
  expect((await app.post('videos', create, { user: 'ben' })).status).toBe(403);
  expect(app.sandbox.jobs).toHaveLength(1);
});

it.each([['forged'], [''], [7], [null], [{}]])('a session that is %j is refused', async (session) => {
  const app = openApp();
  expect(await app.post('videos', { key: KEY, ask: ASK, session })).toMatchObject({ status: 403 });
  expect(app.sandbox.jobs).toEqual([]);
});

it('the ticket of a session opens nothing, and no other ticket is one', async () => {
  const app = openApp();
  const { ticket } = (await app.post('session', {})).body;
  expect((await app.post('watch', { ticket })).status).toBe(404);
  expect((await app.post('uploaded', { put: ticket })).status).toBe(404);
  expect((await app.ask(`file?t=${ticket}`, { headers: { 'x-session': 'ann' } })).status).toBe(404);
  const job = await app.proxy.ticket('job_1', { id: 'ann' });
  expect((await app.post('videos', { key: KEY, ask: ASK, session: job })).status).toBe(403);
});

it('is given to nobody without a session, and counts for the limit of the app', async () => {
  expect((await openApp().post('session', {}, { user: null })).status).toBe(401);
  expect((await openApp({ limit: ({ verb }) => verb !== 'session' }).post('session', {})).status).toBe(429);
});

it('the tickets that a page keeps are open for a month', async () => {
  const app = openApp({ holdMs: 0 }, { clock: 'manual', jobDurationMs: 1_000 });
  const session = (await app.post('session', {})).body.ticket;
  const { ticket } = (await app.post('videos', { key: KEY, ask: ASK, session })).body;
  await app.sandbox.advance(29 * 24 * 3_600_000);
  expect((await app.post('watch', { ticket })).status).toBe(200);
  expect((await app.post('videos', { key: `${KEY}2`, ask: ASK, session })).status).toBe(200);
});
