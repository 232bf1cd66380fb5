// A <video> in Chromium plays files from the handler and seeks in them, with node:http and in workerd.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toNodeHandler } from '../../src/adapters/node/index.js';
import { createOutputHandler } from '../../src/adapters/storage/index.js';
import { GenClient } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { type Browser, hasChromium, launch } from '../support/browser.js';
import { miniflare, startWorker, type TestWorker } from './worker.js';

/** Returns a script that plays briefly, seeks, and returns the element's state. */
const PLAY = (url: string) => `(async () => {
  const video = document.createElement('video');
  video.muted = true;
  video.src = ${JSON.stringify(url)};
  document.body.append(video);
  const event = (name) => new Promise((done, fail) => {
    video.addEventListener(name, done, { once: true });
    video.addEventListener('error', () => fail(new Error(video.error?.message ?? 'error')), { once: true });
  });
  await event('loadeddata');
  await video.play();
  await event('timeupdate');
  video.pause();
  const seeked = event('seeked');
  video.currentTime = video.duration - 0.5;
  await seeked;
  return {
    duration: video.duration,
    position: video.currentTime,
    width: video.videoWidth,
    seekable: video.seekable.end(0),
  };
})()`;

interface VideoState {
  readonly duration: number;
  readonly position: number;
  readonly width: number;
  readonly seekable: number;
}

const APP = '<!doctype html><title>App</title>';

describe.skipIf(!hasChromium)('a video in Chromium', () => {
  const sandbox = createSandbox({ jobDurationMs: 0 });
  let browser: Browser;
  let baseUrl: string;
  let jobId: string;
  const closeCallbacks: (() => Promise<unknown>)[] = [];

  beforeAll(async () => {
    browser = await launch();
    const service = await sandbox.listen({ port: 0 });
    baseUrl = service.url;
    closeCallbacks.push(
      () => service.close(),
      () => browser.close(),
    );
    const { job } = await new GenClient({ apiKey: sandbox.apiKey, baseUrl }).videos.create({
      prompt: 'a fox',
      duration: 5,
    });
    jobId = job.id;
  });
  afterAll(async () => {
    for (const close of closeCallbacks.reverse()) await close();
  });

  const play = async (url: string) => {
    const context = await browser.newContext({});
    const page = await context.newPage();
    // The handler's responses are sandboxed, so a video that is opened directly doesn't autoplay.
    await page.goto(new URL('/app', url).href);
    const state = await page.evaluate<VideoState>(PLAY(url));
    await context.close();
    return state;
  };
  const downloads = () => sandbox.requests.filter(({ path, method }) => /output/.test(path) && method === 'GET');

  it('plays and seeks through node:http, despite interrupted connections', async () => {
    const client = new GenClient({ apiKey: sandbox.apiKey, baseUrl });
    const serve = createOutputHandler({ client, authorize: (_, id) => id === jobId });
    const html = { headers: { 'content-type': 'text/html' } };
    const server = createServer(
      toNodeHandler((request) => (request.url.endsWith('/app') ? new Response(APP, html) : serve(request))),
    );
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    closeCallbacks.push(() => new Promise((done) => server.close(done)));
    sandbox.faults.add({ match: { path: `/v1/jobs/${jobId}/output` }, truncate: true, times: 2 });
    const state = await play(`http://127.0.0.1:${(server.address() as AddressInfo).port}/files/${jobId}`);
    expect(state.duration).toBeCloseTo(5, 0);
    expect(state.position).toBeCloseTo(state.duration - 0.5, 1);
    expect(state.seekable).toBeCloseTo(state.duration, 1);
    expect(state.width).toBeGreaterThan(0);
    expect(downloads().length).toBeGreaterThan(0);
  });

  it.skipIf(!miniflare)('plays and seeks in workerd', async () => {
    const program = `
      import { GenClient } from 'gen-client';
      import { createOutputHandler } from 'gen-client/storage';
      export default { fetch(request, env) {
        if (new URL(request.url).pathname === '/app') return new Response('${APP}', { headers: { 'content-type': 'text/html' } });
        const client = new GenClient({ apiKey: env.KEY, baseUrl: env.BASE_URL });
        return createOutputHandler({ client, authorize: (_, id) => id === env.JOB })(request);
      } };`;
    const worker: TestWorker = await startWorker(program, { KEY: sandbox.apiKey, BASE_URL: baseUrl, JOB: jobId });
    closeCallbacks.push(() => worker.dispose());
    const state = await play(`${(await worker.ready).href}files/${jobId}`);
    expect(state.position).toBeCloseTo(state.duration - 0.5, 1);
    expect(state.seekable).toBeCloseTo(state.duration, 1);
  });
});
