import { join } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { GenClient } from '../../src/client/client.js';
import { createSandbox, type Listening, type Sandbox } from '../../src/sandbox/index.js';
import { type Browser, hasChromium, launch, type Page } from '../support/browser.js';
import { ROOT } from '../support/build.js';

describe.skipIf(!hasChromium)('the sandbox page, in Chromium', () => {
  let browser: Browser;
  let page: Page;
  let sandbox: Sandbox;
  let server: Listening;
  let client: GenClient;
  const errors: string[] = [];
  const requestedUrls: string[] = [];
  const sandboxUrls: string[] = [];

  beforeAll(async () => {
    browser = await launch();
    sandbox = createSandbox({
      clock: 'manual',
      limits: 'off',
      prices: 15,
      webhookFetch: async () => new Response(null, { status: 204 }),
    });
    server = await sandbox.listen();
    sandboxUrls.push(server.url);
    client = new GenClient({ apiKey: sandbox.apiKey, baseUrl: server.url, rateLimit: 'off' });
    const context = await browser.newContext({});
    page = await context.newPage();
    page.on('console', (message) => errors.push(message.text()));
    page.on('pageerror', (error) => errors.push(String(error)));
    page.on('request', (request) => requestedUrls.push(request.url()));
    await page.goto(server.url);
  });
  beforeEach(async () => {
    sandbox.reset();
    await until('document.querySelectorAll("#jobs li").length === 0');
    errors.length = 0;
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  /** Polls from the test, because the page's policy forbids `eval`. */
  const until = (condition: string) =>
    vi.waitFor(async () => expect(await page.evaluate<boolean>(condition), condition).toBe(true), { timeout: 8000 });
  const untilText = (selector: string, text: string) =>
    until(
      `document.querySelector(${JSON.stringify(selector)})?.textContent.includes(${JSON.stringify(text)}) === true`,
    );

  it('updates a job and plays its video', async () => {
    const { job } = await client.videos.create({ prompt: 'a fox at dawn', duration: 5, resolution: '720p' });
    await untilText(`#job-${job.id} .status`, 'processing');
    await page.click('#ten');
    await untilText(`#job-${job.id} .status`, 'completed');
    await page.evaluate(`document.querySelector('#job-${job.id} video').play()`);
    await until(`document.querySelector('#job-${job.id} video').currentTime > 0.2`);
    const properties = `(({ videoWidth, videoHeight, duration, error }) => ({ videoWidth, videoHeight, duration, error }))`;
    expect(await page.evaluate(`${properties}(document.querySelector('#job-${job.id} video'))`)).toEqual({
      videoWidth: 1280,
      videoHeight: 720,
      duration: 5,
      error: null,
    });
    await page.evaluate(`document.querySelector('#job-${job.id} video').currentTime = 4.5`);
    await until(`document.querySelector('#job-${job.id} video').currentTime > 4.4`);
    expect(errors).toEqual([]);
  });

  it("shows a job's error or warning", async () => {
    const failed = await client.videos.create({ prompt: '[fail:generation_rejected]' });
    const warned = await client.videos.create({ prompt: 'a', reference_videos: ['https://a.test/broken.mp4'] });
    await sandbox.advance(3000);
    await untilText(
      `#job-${failed.job.id}`,
      'generation_rejected: The prompt, a reference, or an option was declined.',
    );
    await untilText(`#job-${warned.job.id}`, 'video_reference_fallback_omitted_clips');
  });

  it("shows callers' text as text, never as markup", async () => {
    const attack = '</li><img src=x onerror="window.pwned=1"><script>window.pwned=1</script>';
    const { job } = await client.videos.create({
      prompt: attack,
      webhook_url: 'https://receiver.test/"><script>window.pwned=1</script>',
    });
    await fetch(`${server.url}/v1/<img src=x onerror="window.pwned=1">?q=<script>`, { method: 'POST' });
    await untilText(`#job-${job.id} .prompt`, attack);
    await page.click('#minute');
    await untilText('#deliveries', 'receiver.test');
    await untilText('#requests', 'onerror');
    expect(await page.evaluate('window.pwned')).toBeUndefined();
    expect(await page.evaluate('document.querySelectorAll("[src=x], main script").length')).toBe(0);
    expect(errors).toEqual([]);
  });

  it("reuses an unchanged row's node, so its video continues to play", async () => {
    const { job } = await client.videos.create({ prompt: 'a fox' });
    await page.click('#ten');
    await untilText(`#job-${job.id} .status`, 'completed');
    await page.evaluate(`document.querySelector('#job-${job.id} video').dataset.mark = 'same'`);
    await client.videos.create({ prompt: 'another' });
    await until('document.querySelectorAll("#jobs li").length === 2');
    expect(await page.evaluate(`document.querySelector('#job-${job.id} video').dataset.mark`)).toBe('same');
  });

  it("shows the balance over time and each rate limit's usage", async () => {
    await client.videos.create({ prompt: 'a red fox' });
    await untilText('#balance', '985 tokens');
    await untilText('#money', '15 reserved, 0 charged');
    await sandbox.advance(3000);
    await untilText('#money', '0 reserved, 15 charged');
    await untilText('#range', 'Balance from 985 to 1000 tokens');
    await until(`/V/.test(document.querySelector('#plot path').getAttribute('d'))`);
    await page.click('#topup');
    await untilText('#balance', '1385 tokens');
    const counting = createSandbox({ jobDurationMs: 0 });
    const other = await counting.listen();
    sandboxUrls.push(other.url);
    await new GenClient({ apiKey: counting.apiKey, baseUrl: other.url }).videos.create({ prompt: 'a fox' });
    await page.goto(other.url);
    await untilText('#limits', 'videos.create1 of 20');
    await page.goto(server.url);
    await other.close();
  });

  it('sets the next outcome, the next fault, and the dispatch', async () => {
    await page.click('#add-outcome');
    await untilText('#queued', '1 outcome is queued.');
    const { job } = await client.videos.create({ prompt: 'a fox' });
    await untilText(`#job-${job.id} .status`, 'processing');
    await page.click(`#job-${job.id} button`);
    await untilText(`#job-${job.id} .status`, 'completed');
    await client.videos.create({ prompt: 'a fox' });
    await untilText('#queued', '');
    await page.click('#add-fault');
    await untilText('#faults', 'POST commitThenDrop:true');
    await page.evaluate('document.querySelector("#faults button").focus()');
    await page.keyboard.press('Enter');
    await until('document.querySelectorAll("#faults li").length === 0');
    await page.click('#dispatch');
    await untilText('#dispatch', 'Resume generation');
    expect(sandbox.dispatch).toBe('disabled');
    await page.click('#dispatch');
    await untilText('#dispatch', 'Pause generation');
    expect(errors).toEqual([]);
  });

  it("adds at most 40 kB to the CLI's bundle", async () => {
    const { metafile } = await build({
      entryPoints: [join(ROOT, 'src/cli/index.ts')],
      bundle: true,
      write: false,
      metafile: true,
      minifyWhitespace: true,
      format: 'esm',
      platform: 'node',
      packages: 'external',
    });
    const [output] = Object.values(metafile.outputs);
    const sizes = Object.entries(output?.inputs ?? {}).flatMap(([path, { bytesInOutput }]) =>
      /sandbox\/control\/page/.test(path) ? [bytesInOutput] : [],
    );
    expect(sizes).toHaveLength(3);
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(40_000);
  });

  it.each([390, 1440])('fits a %d px wide screen without horizontal scrolling', async (width) => {
    await client.videos.create({ prompt: 'x'.repeat(300), webhook_url: `https://receiver.test/${'a'.repeat(200)}` });
    await sandbox.advance(3000);
    await page.setViewportSize({ width, height: 800 });
    await untilText('#deliveries', 'receiver.test');
    expect(await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
    await page.setViewportSize({ width: 1280, height: 720 });
  });

  it('sends requests only to the sandbox, and shows an alert when it is unavailable', async () => {
    expect(requestedUrls.filter((url) => ![...sandboxUrls, 'data:'].some((prefix) => url.startsWith(prefix)))).toEqual(
      [],
    );
    await server.close();
    await until('!document.getElementById("offline").hidden');
  });
});
