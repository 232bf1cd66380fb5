import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { GenClient } from '../../src/client.js';
import { createSandbox, type Listening, type Sandbox } from '../../src/sandbox/index.js';
import { type Browser, hasChromium, launch, type Page } from './browser.js';

/** Adds up what moved without being asked to, as browsers measure it. */
const WATCH_SHIFTS = `
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.shifts.push(entry.value);
  }).observe({ type: 'layout-shift', buffered: true });`;

describe.skipIf(!hasChromium)('the page, in Chromium', () => {
  let browser: Browser;
  let page: Page;
  let sandbox: Sandbox;
  let server: Listening;
  let client: GenClient;
  const complaints: string[] = [];
  const requested: string[] = [];

  beforeAll(async () => {
    browser = await launch();
    sandbox = createSandbox({
      clock: 'manual',
      limits: 'off',
      webhookFetch: async (url) => new Response(null, { status: String(url).includes('bad') ? 500 : 204 }),
    });
    server = await sandbox.listen();
    client = new GenClient({ apiKey: sandbox.apiKey, baseUrl: server.url, rateLimit: 'off' });
    const context = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'] });
    page = await context.newPage();
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('request', (request) => requested.push(request.url()));
    await page.addInitScript(WATCH_SHIFTS);
    await page.goto(server.url);
  });
  beforeEach(async () => {
    sandbox.reset();
    await holds('document.querySelectorAll(".card").length === 0');
    complaints.length = 0;
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  /** Asked from outside: the page's own policy forbids it to evaluate text. */
  const holds = (condition: string) =>
    vi.waitFor(async () => expect(await page.evaluate<boolean>(condition), condition).toBe(true), { timeout: 8000 });
  const says = (selector: string, text: string) =>
    holds(
      `document.querySelector(${JSON.stringify(selector)})?.textContent.includes(${JSON.stringify(text)}) === true`,
    );
  const blur = () => page.evaluate('document.activeElement.blur()');

  it('shows a job as it moves, and plays its video', async () => {
    const { job } = await client.videos.create({ prompt: 'a fox at dawn', duration: 5, resolution: '720p' });
    await says(`#job-${job.id} .status`, 'processing');
    await page.click('[data-advance="10"]');
    await says(`#job-${job.id} .status`, 'completed');
    await page.evaluate(`document.querySelector('#job-${job.id} video').play()`);
    await holds(`document.querySelector('#job-${job.id} video').currentTime > 0.2`);
    const facts = `(({ videoWidth, videoHeight, duration, error }) => ({ videoWidth, videoHeight, duration, error }))`;
    expect(await page.evaluate(`${facts}(document.querySelector('#job-${job.id} video'))`)).toEqual({
      videoWidth: 1280,
      videoHeight: 720,
      duration: 5,
      error: null,
    });
    await page.evaluate(`document.querySelector('#job-${job.id} video').currentTime = 4.5`);
    await holds(`document.querySelector('#job-${job.id} video').currentTime > 4.4`);
    expect(complaints).toEqual([]);
  });

  it('shows an image', async () => {
    const { job } = await client.images.create({ prompt: 'a fox', model: 'svc-image-pro', ratio: '21:9' });
    await page.click('[data-advance="60"]');
    const picture = `document.querySelector('#job-${job.id} img')`;
    await holds(`${picture}?.complete === true && ${picture}.naturalWidth > 0`);
    const ratio = await page.evaluate<number>(`${picture}.naturalWidth / ${picture}.naturalHeight`);
    expect(ratio).toBeCloseTo(21 / 9, 5);
  });

  it('says what became of a job: its error, its warning, or that there is no file', async () => {
    const failed = await client.videos.create({ prompt: '[fail:generation_rejected]' });
    const canceled = await client.videos.create({ prompt: '[canceled]' });
    const blocked = await client.videos.create({ prompt: '[blocked]' });
    const warned = await client.videos.create({ prompt: 'a', reference_videos: ['https://a.test/broken.mp4'] });
    await sandbox.advance(3000);
    await says(`#job-${failed.job.id}`, 'generation_rejected: The prompt, a reference or an option was declined.');
    await says(`#job-${warned.job.id}`, 'Made without its clips: video_reference_fallback_omitted_clips');
    for (const { job } of [failed, canceled, blocked]) await says(`#job-${job.id} .media`, 'No file');
  });

  it('shows what callers sent as text, never as markup', async () => {
    const attack = '</li><img src=x onerror="window.pwned=1"><script>window.pwned=1</script>';
    const { job } = await client.videos.create({
      prompt: attack,
      webhook_url: 'https://receiver.test/"><script>window.pwned=1</script>',
    });
    await fetch(`${server.url}/v1/<img src=x onerror="window.pwned=1">?q=<script>`, { method: 'POST' });
    await says(`#job-${job.id} .prompt`, attack);
    await page.click('[data-advance="60"]');
    await says('#deliveries', 'receiver.test');
    await page.click('#tab-requests');
    await says('#requests', 'onerror');
    await page.click('#tab-deliveries');
    expect(await page.evaluate('window.pwned')).toBeUndefined();
    expect(await page.evaluate('document.querySelectorAll("[src=x], main script").length')).toBe(0);
    expect(complaints).toEqual([]);
  });

  it('keeps a card calm under a prompt of 5,000 characters, and shows all of it on demand', async () => {
    const { job } = await client.videos.create({ prompt: 'snail '.repeat(830) });
    const card = `document.querySelector('#job-${job.id}')`;
    await holds(`${card} !== null`);
    const height = await page.evaluate<number>(`${card}.offsetHeight`);
    expect(height).toBeLessThan(480);
    await page.click(`#job-${job.id} [aria-expanded]`);
    expect(await page.evaluate(`${card}.querySelector('[aria-expanded]').getAttribute('aria-expanded')`)).toBe('true');
    expect(await page.evaluate<number>(`${card}.offsetHeight`)).toBeLessThan(height + 150);
    expect(await page.evaluate(`${card}.querySelector('.prompt').textContent.length`)).toBe(4980);
    await sandbox.advance(3000);
    await says(`#job-${job.id} .status`, 'completed');
    expect(await page.evaluate(`${card}.querySelector('.prompt').classList.contains('open')`)).toBe(true);
  });

  it('offers filters once there are many jobs, and finds the old ones of a kind', async () => {
    await client.videos.create({ prompt: 'the one [fail:generation_failed]' });
    await sandbox.advance(3000);
    expect(await page.evaluate('document.getElementById("filters").hidden')).toBe(true);
    await Promise.all(Array.from({ length: 120 }, (_, at) => client.images.create({ prompt: `image ${at}` })));
    await says('#filters', 'Running 120');
    await says('#more', 'The newest 100 of 121 jobs.');
    expect(await page.evaluate('document.querySelectorAll(".card").length')).toBe(100);
    await page.click('#filters button:nth-child(4)');
    await holds('document.querySelectorAll(".card").length === 1');
    await says('.card', 'the one');
    await page.click('#filters button:nth-child(3)');
    await holds('document.getElementById("none").hidden === false');
    await page.click('#filters button:nth-child(1)');
    await holds('document.querySelectorAll(".card").length === 100');
  });

  it('is told of changes by a stream and asks for nothing meanwhile', async () => {
    const before = requested.length;
    for (let at = 0; at < 5; at++) await client.images.create({ prompt: `a fox ${at}` });
    await holds('document.querySelectorAll(".card").length === 5');
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect(requested.slice(before)).toEqual([]);
  });

  it('moves nothing on the screen while jobs come to their end', async () => {
    for (let at = 0; at < 4; at++) await client.images.create({ prompt: `a fox ${at}` });
    await client.videos.create({ prompt: 'a fox that is seen' });
    await holds('document.querySelectorAll(".card").length === 5');
    await new Promise((resolve) => setTimeout(resolve, 300));
    await page.evaluate('window.shifts.length = 0');
    await sandbox.advance(3000);
    await holds('document.querySelectorAll(".completed").length === 5');
    await holds('[...document.images].filter((image) => image.complete && image.naturalWidth).length === 4');
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await page.evaluate('window.shifts.reduce((sum, shift) => sum + shift, 0)')).toBeLessThan(0.001);
  });

  it('sets how the next job ends by key, as chosen, and shows and clears it', async () => {
    await page.selectOption('#code', 'generation_rejected');
    await blur();
    await page.keyboard.press('f');
    await says('#outcomes', 'Next: generation_rejected');
    const { job } = await client.videos.create({ prompt: 'a fox' });
    await page.keyboard.press('a');
    await says(`#job-${job.id}`, 'generation_rejected');
    await page.keyboard.press('f');
    await page.click('#clear-outcomes');
    await says('#outcomes', 'No outcome set');
    sandbox.faults.add({ reset: true });
    sandbox.dispatch = 'disabled';
    await says('#faults', '1 fault rule');
    await holds('document.getElementById("dispatch").checked === false');
    await page.click('#clear-faults');
    await page.click('#dispatch');
    await vi.waitFor(() => expect([sandbox.faults.list(), sandbox.dispatch]).toEqual([[], 'enabled']));
  });

  it('lets the single-key shortcuts be switched off, and remembers it', async () => {
    await page.click('#shortcuts');
    await blur();
    const before = sandbox.now();
    for (const key of ['a', 'm', 'f']) await page.keyboard.press(key);
    await page.goto(server.url);
    await says('#link', 'Live');
    expect(await page.evaluate('document.getElementById("shortcuts").checked')).toBe(false);
    expect(await page.evaluate('getComputedStyle(document.querySelector("kbd")).display')).toBe('none');
    await page.keyboard.press('a');
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect([sandbox.now() - before, await page.evaluate('document.getElementById("outcomes").textContent')]).toEqual([
      0,
      'No outcome set',
    ]);
    await page.click('#shortcuts');
    await blur();
    await page.keyboard.press('a');
    await vi.waitFor(() => expect(sandbox.now() - before).toBe(10_000));
  });

  it('moves the clock by any time, with the keyboard alone, and refuses one that it cannot reach', async () => {
    const before = sandbox.now();
    await page.evaluate('document.getElementById("seconds").focus()');
    await page.fill('#seconds', '90');
    await page.keyboard.press('Enter');
    await says('#say', '90 s');
    expect(sandbox.now() - before).toBe(90_000);
    const focusable = 'document.querySelectorAll("button, select, input, [tabindex]")';
    expect(await page.evaluate(`[...${focusable}].filter((node) => node.tabIndex > 0).length`)).toBe(0);
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.tagName')).toBe('BUTTON');
    expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).toBe('solid');
    await page.evaluate('document.getElementById("seconds").removeAttribute("max")');
    await page.fill('#seconds', '99999999999999');
    await page.click('#advance button');
    await says('#say', "the sandbox's clock ends with the year 8999");
    await page.fill('#seconds', '1');
    await page.click('#advance button');
    await vi.waitFor(() => expect(sandbox.now() - before).toBe(91_000));
  });

  it('tells what a delivery was for, and sends it again once or twice, each event in one place', async () => {
    const { job } = await client.videos.create({ prompt: 'a red fox', webhook_url: 'https://receiver.test/bad' });
    await client.videos.create({ prompt: 'a grey wolf', webhook_url: 'https://receiver.test/hook' });
    await sandbox.advance(60_000);
    await holds('document.querySelectorAll("#deliveries tr").length === 4');
    await says('#deliveries tr:first-child', 'a red fox');
    await says('#deliveries', 'a grey wolf');
    expect(await page.evaluate('document.querySelectorAll("#deliveries td.send button").length')).toBe(4);
    await page.click('#deliveries tr:first-child td.send button:nth-of-type(1)');
    await holds('document.querySelectorAll("#deliveries tr").length === 5');
    await page.click('#deliveries tr:first-child td.send button:nth-of-type(2)');
    await holds('document.querySelectorAll("#deliveries tr").length === 7');
    expect(sandbox.deliveries.filter(({ jobId }) => jobId === job.id)).toHaveLength(6);
    await page.click('#deliveries tr:first-child td.job button');
    await holds(`document.querySelector('#job-${job.id}').classList.contains('found')`);
  });

  it('shows balance and ledger, tops up, and finishes a job', async () => {
    await page.click('#topup');
    await says('#free', '1,400');
    const { job } = await client.videos.create({ prompt: 'a fox' });
    await says('#spent', '15 reserved, 0 charged');
    await page.click(`#job-${job.id} .line button`);
    await says(`#job-${job.id} .status`, 'completed');
    await says('#spent', '0 reserved, 15 charged');
    await page.click('#tab-ledger');
    await says('#ledger', 'top_up');
    expect(
      await page.evaluate('[...document.querySelector("#ledger tr").cells].map((cell) => cell.textContent)'),
    ).toEqual([expect.stringMatching(/^\d\d:\d\d:\d\d$/), 'charge', job.id, '15', '1,385']);
    await page.keyboard.press('ArrowRight');
    expect(await page.evaluate('document.activeElement.id')).toBe('tab-deliveries');
  });

  it('copies a request as a curl line that a shell runs', async () => {
    await client.videos.create({ prompt: "it's; $(touch /tmp/no) `a` fox" }, { idempotencyKey: 'once' });
    await page.click('#tab-requests');
    await says('#requests', '/v1/videos');
    await page.click('#requests button');
    await says('#say', 'copied');
    const curl = await page.evaluate<string>('navigator.clipboard.readText()');
    const { stdout } = await promisify(execFile)('sh', ['-c', `${curl} -s`]);
    expect(JSON.parse(stdout).data.job.id).toBe(sandbox.jobs[0]?.id);
    expect(sandbox.jobs).toHaveLength(1);
    await page.click('#tab-deliveries');
  });

  it('gives a first command that works, and asks twice before it forgets', async () => {
    await page.click('#copy-example');
    await says('#say', 'copied');
    const curl = await page.evaluate<string>('navigator.clipboard.readText()');
    await promisify(execFile)('sh', ['-c', curl]);
    await holds('document.querySelectorAll(".card").length === 1');
    await page.click('#reset');
    await says('#reset', 'Press again');
    expect(sandbox.jobs).toHaveLength(1);
    await page.click('#reset');
    await holds('document.querySelectorAll(".card").length === 0');
    expect(sandbox.jobs).toEqual([]);
  });

  it.each([
    [390, 844],
    [820, 1180],
    [1440, 900],
    [2200, 1200],
  ])('fits a screen of %d px, without a sideways scroll and with targets for a finger', async (width, height) => {
    await client.videos.create({ prompt: 'x'.repeat(300), webhook_url: `https://receiver.test/${'a'.repeat(200)}` });
    await sandbox.advance(3000);
    await page.setViewportSize({ width, height });
    await holds('document.querySelectorAll(".card").length === 1');
    await says('#deliveries', 'receiver.test');
    expect(await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
    const small = `[...document.querySelectorAll('button, select, input')].filter((node) => node.offsetParent && node.offsetHeight < 24
      && !node.matches('.quiet, [type=checkbox]')).map((node) => node.outerHTML)`;
    expect(await page.evaluate(small)).toEqual([]);
    await page.setViewportSize({ width: 1280, height: 720 });
  });

  it('is dark for those who want it dark, and legible in both', async () => {
    const shade =
      '(getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number).reduce((a, b) => a + b))';
    await client.videos.create({ prompt: '[fail:generation_failed]' });
    await sandbox.advance(3000);
    await says('.status', 'failed');
    /** The lowest contrast of text that stands on an opaque colour of its own or of an ancestor (WCAG 2.1, 1.4.3). */
    const contrast = `(() => {
      const rgb = (color) => color.match(/[\\d.]+/g).map(Number);
      const light = ([r, g, b]) => [r, g, b].map((part) => part / 255).map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
        .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
      const behind = (node) => { for (let at = node; at; at = at.parentElement) { const color = rgb(getComputedStyle(at).backgroundColor); if (color[3] !== 0) return color; } return [255, 255, 255]; };
      const texts = [...document.querySelectorAll('body *')].filter((node) => node.offsetParent && [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim()));
      return Math.min(...texts.map((node) => { const [a, b] = [light(rgb(getComputedStyle(node).color)), light(behind(node))]; return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); }));
    })()`;
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await page.evaluate<number>(shade)).toBeLessThan(150);
    expect(await page.evaluate<number>(contrast)).toBeGreaterThan(4.5);
    await page.emulateMedia({ colorScheme: 'light' });
    expect(await page.evaluate<number>(shade)).toBeGreaterThan(600);
    expect(await page.evaluate<number>(contrast)).toBeGreaterThan(4.5);
  });

  it('asks nobody but the sandbox, and says so when it is gone', async () => {
    expect(requested.filter((url) => !url.startsWith(server.url) && !url.startsWith('data:'))).toEqual([]);
    await server.close();
    await holds('!document.getElementById("offline").hidden');
    await says('#link', 'No answer');
  });
});
