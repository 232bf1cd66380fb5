import { describe, expect, it } from 'vitest';
import { APP, KEY, openApp } from './support.js';

describe('a page that creates a video', () => {
  it('gets a ticket, follows the job to its end, and plays its file', async () => {
    const app = openApp();
    const created = await app.post('videos', { key: KEY, ask: { prompt: 'a fox at dawn' } });
    expect(created.status).toBe(200);
    expect(created.headers.get('cache-control')).toBe('no-store');
    const { tokens } = created.body;
    expect(tokens).toBeGreaterThan(0);
    let answer = created.body;
    while (!answer.final) {
      expect(answer.tokens).toBe(tokens);
      const next = await app.post('watch', { ticket: created.body.ticket, seen: answer.status });
      expect(next.status).toBe(200);
      answer = next.body;
    }
    expect(answer).toMatchObject({ status: 'completed', share: 1, tokens });
    const file = await app.ask(`file?t=${answer.file}`, { headers: { 'x-session': 'ann', range: 'bytes=0-99' } });
    expect(file.status).toBe(206);
    expect(file.headers.get('content-type')).toContain('video/mp4');
    expect(file.headers.get('referrer-policy')).toBe('no-referrer');
    expect((await file.arrayBuffer()).byteLength).toBe(100);
  });

  it('uploads an image through the proxy and uses it by its ticket', async () => {
    const app = openApp();
    const image = await (await app.client.jobs.output(await app.client.images.createAndWait({ prompt: 'x' }))).bytes();
    const asked = { file_name: 'fox.png', mime_type: 'image/png', file_size: image.byteLength };
    const begun = await app.post('upload', asked);
    expect(begun.status).toBe(200);
    const headers = { 'x-gen-page': '1', 'x-session': 'ann', 'x-gen-ticket': String(begun.body.put) };
    const sent = await app.ask('bytes', { method: 'POST', headers, body: image });
    expect(await sent.json()).toEqual({});
    const ended = await app.post('uploaded', { put: begun.body.put });
    const ask = { prompt: 'a fox', first_frame_upload_id: ended.body.upload };
    const created = await app.post('videos', { key: KEY, ask });
    expect(created).toMatchObject({ status: 200 });
    expect((await app.post('videos', { key: `${KEY}x`, ask }, { user: 'ben' })).status).toBe(404);
  });

  it('gives a link that opens without a session', async () => {
    const app = openApp();
    const job = await app.client.videos.createAndWait({ prompt: 'a fox' });
    const link = await app.proxy.link(job, { expiresInMs: 60_000 });
    expect((await app.ask(link)).status).toBe(200);
    const whole = openApp({ url: `${APP}/api/gen/` });
    expect(await whole.proxy.link(job, { expiresInMs: 60_000 })).toMatch(/^https:\/\/app\.test\/api\/gen\/file\?t=/);
  });
});
