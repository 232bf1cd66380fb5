import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { GenClient } from '../../src/client.js';
import { createSandbox, type Listening, type Sandbox } from '../../src/sandbox/index.js';
import { realTool } from './real-tools.js';

/** The part of playwright that is used here; it is not installed at the root. */
interface Page {
  goto(url: string): Promise<unknown>;
  evaluate<T>(script: string): Promise<T>;
  click(selector: string): Promise<void>;
  fill(selector: string, text: string): Promise<void>;
  selectOption(selector: string, value: string): Promise<unknown>;
  textContent(selector: string): Promise<string | null>;
  emulateMedia(media: { colorScheme: 'dark' | 'light' }): Promise<void>;
  keyboard: { press(key: string): Promise<void> };
  on(event: 'console' | 'pageerror' | 'request', tell: (seen: { text(): string; url(): string }) => void): void;
}
interface Browser {
  newContext(options: object): Promise<{ newPage(): Promise<Page> }>;
  close(): Promise<void>;
}

const playwright = realTool('playwright-core');
const chromium = realTool('chromium');
const FLAGS = '--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-sync';

describe.skipIf(!playwright || !chromium)('the page, in Chromium', () => {
  let browser: Browser;
  let page: Page;
  let sandbox: Sandbox;
  let server: Listening;
  let client: GenClient;
  const complaints: string[] = [];
  const requested: string[] = [];

  beforeAll(async () => {
    const { chromium: engine } = await import(playwright ?? '');
    browser = await engine.launch({
      executablePath: chromium,
      args: [...FLAGS.split(' '), '--disable-component-update'],
    });
    sandbox = createSandbox({ clock: 'manual', webhookFetch: async () => new Response(null, { status: 204 }) });
    server = await sandbox.listen();
    client = new GenClient({ apiKey: sandbox.apiKey, baseUrl: server.url });
    const context = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'] });
    page = await context.newPage();
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('request', (request) => requested.push(request.url()));
    await page.goto(server.url);
  });
  beforeEach(() => {
    sandbox.reset();
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

  it('shows what callers sent as text, never as markup', async () => {
    const attack = '</li><img src=x onerror="window.pwned=1"><script>window.pwned=1</script>';
    const { job } = await client.videos.create({
      prompt: attack,
      webhook_url: 'https://receiver.test/"><script>window.pwned=1</script>',
    });
    await fetch(`${server.url}/v1/<img src=x onerror="window.pwned=1">?q=<script>`, { method: 'POST' });
    await says(`#job-${job.id} p:nth-of-type(2)`, attack);
    await page.click('[data-advance="60"]');
    await says('#deliveries', 'receiver.test');
    await says('#requests', 'onerror');
    expect(await page.evaluate('window.pwned')).toBeUndefined();
    expect(await page.evaluate('document.querySelectorAll("[src=x], main script").length')).toBe(0);
    expect(complaints).toEqual([]);
  });

  it('fails the next job by key, as chosen', async () => {
    await page.selectOption('#code', 'generation_rejected');
    await page.evaluate('document.activeElement.blur()');
    await page.keyboard.press('f');
    await says('#say', 'generation_rejected');
    const { job } = await client.videos.create({ prompt: 'a fox' });
    await page.keyboard.press('a');
    await says(`#job-${job.id}`, 'failed · generation_rejected');
  });

  it('moves the clock by any time, with the keyboard alone', async () => {
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
  });

  it('replays a delivery and sends it twice', async () => {
    await client.videos.create({ prompt: 'a fox', webhook_url: 'https://receiver.test/hook' });
    await page.click('[data-advance="60"]');
    await says('#deliveries', 'job.completed');
    await page.click('#deliveries button:nth-of-type(1)');
    await holds('document.querySelectorAll("#deliveries tr").length === 2');
    await page.click('#deliveries button:nth-of-type(2)');
    await holds('document.querySelectorAll("#deliveries tr").length === 4');
    expect(new Set(sandbox.deliveries.map(({ eventId }) => eventId)).size).toBe(1);
  });

  it('shows balance and ledger, and tops up', async () => {
    await page.click('#topup');
    await says('#free', '1400 tokens free');
    await says('#ledger', 'top_up');
  });

  it('copies a request as a curl line that a shell runs', async () => {
    await client.videos.create({ prompt: "it's; $(touch /tmp/no) `a` fox" }, { idempotencyKey: 'once' });
    await says('#requests', '/v1/videos');
    await page.click('#requests button');
    await says('#say', 'copied');
    const curl = await page.evaluate<string>('navigator.clipboard.readText()');
    const { stdout } = await promisify(execFile)('sh', ['-c', `${curl} -s`]);
    expect(JSON.parse(stdout).data.job.id).toBe(sandbox.jobs[0]?.id);
    expect(sandbox.jobs).toHaveLength(1);
  });

  it('is dark for those who want it dark', async () => {
    const shade =
      '(getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number).reduce((a, b) => a + b))';
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await page.evaluate<number>(shade)).toBeLessThan(150);
    await page.emulateMedia({ colorScheme: 'light' });
    expect(await page.evaluate<number>(shade)).toBeGreaterThan(600);
  });

  it('asks nobody but the sandbox, and says so when it is gone', async () => {
    expect(requested.filter((url) => !url.startsWith(server.url) && !url.startsWith('data:'))).toEqual([]);
    await server.close();
    await holds('!document.getElementById("offline").hidden');
  });
});
