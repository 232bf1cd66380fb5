// The built site in Chromium: `npm run docs` comes first. The playground makes a picture and a video in the page itself.
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Browser, hasChromium, launch, type Page } from '../sandbox-doors/browser.js';
import { ROOT } from '../support/build.js';

const SITE = join(ROOT, 'docs/.vitepress/dist');
const isBuilt = existsSync(join(SITE, 'playground.html'));
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.txt': 'text/plain',
};

test.runIf(process.env.CI)('the site was built and Chromium is there', () => {
  expect({ isBuilt, hasChromium }).toEqual({ isBuilt: true, hasChromium: true });
});

describe.skipIf(!isBuilt || !hasChromium)('the playground', () => {
  let server: Server;
  let browser: Browser;
  let page: Page;
  let origin = '';
  const requests: string[] = [];
  const complaints: string[] = [];

  beforeAll(async () => {
    server = createServer((request, response) => {
      const file = join(SITE, new URL(request.url ?? '/', 'http://site').pathname);
      if (!existsSync(file)) return void response.writeHead(404).end();
      const type = TYPES[extname(file)] ?? 'application/octet-stream';
      response.writeHead(200, { 'content-type': type }).end(readFileSync(file));
    });
    await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    browser = await launch();
    page = await (await browser.newContext({ viewport: { width: 1360, height: 900 } })).newPage();
    page.on('request', (request) => void requests.push(request.url()));
    page.on('pageerror', (error) => void complaints.push(String(error)));
    await page.goto(`${origin}/playground.html`);
  });

  afterAll(async () => {
    await browser?.close();
    server?.close();
  });

  /** Waits until an expression in the page holds. */
  const until = (expression: string) =>
    page.evaluate<void>(`new Promise((done, failed) => {
      const end = Date.now() + 15000;
      const look = () => (${expression}) ? done() : Date.now() > end ? failed(new Error(${JSON.stringify(expression)})) : setTimeout(look, 20);
      look();
    })`);
  const textOf = (selector: string) =>
    page.evaluate<string>(`document.querySelector(${JSON.stringify(selector)})?.textContent ?? ''`);
  const spent = async () => Number(await textOf('#pg-spent'));
  const runs = async (program: string) => {
    await page.fill('#pg-code', program);
    await page.click('#pg-run');
    await until("['done', 'failed'].includes(document.querySelector('.pg').dataset.state)");
  };

  test('makes the picture that its controls ask for, and shows its webhook and its charge', async () => {
    await until("document.querySelector('#pg-run') !== null");
    await page.click('.pg-tabs button:nth-child(2)');
    await page.fill('#pg-prompt', 'a red lighthouse');
    await page.selectOption('#pg-ratio', '21:9');
    await page.click('#pg-run');
    await until("document.querySelector('.pg').dataset.state === 'running'");
    await until('Number(document.querySelector("#pg-reserved").textContent) > 0');
    await until("document.querySelector('#pg-image')?.naturalWidth > 0");
    const ratio = await page.evaluate<number>(
      "(({ naturalWidth, naturalHeight }) => naturalWidth / naturalHeight)(document.querySelector('#pg-image'))",
    );
    expect(ratio).toBeCloseTo(21 / 9, 2);
    expect(await textOf('#pg-webhook')).toContain('"job.completed"');
    expect(await textOf('#pg-feed')).toContain('signature verified');
    expect(await spent()).toBeGreaterThan(0);
    expect(Number(await textOf('#pg-balance')) + (await spent())).toBe(1_000);
  });

  test('runs a program that was edited, and plays the video', async () => {
    const before = await spent();
    await runs(`import { isCompleted } from 'gen-client';
      sandbox.outcomes.next({ durationMs: 0 });
      const job = await client.videos.createAndWait({ prompt: 'a fox', duration: 4, aspect_ratio: '9:16' });
      console.log('completed:', isCompleted(job));
      await show(job);`);
    await until("document.querySelector('#pg-video')?.currentTime > 0");
    expect(await textOf('#pg-feed')).toContain('completed: true');
    expect(await spent()).toBeGreaterThan(before);
  });

  test('charges one job when the first answer is lost', async () => {
    const jobs = "sandbox.ledger().entries.filter(({ type }) => type === 'charge').length";
    await runs(`const before = ${jobs};
      sandbox.faults.add({ match: { path: '/v1/videos' }, commitThenDrop: true });
      sandbox.outcomes.next({ durationMs: 0 });
      await client.videos.createAndWait({ prompt: 'a fox' });
      console.log('charges:', ${jobs} - before);`);
    expect(await textOf('#pg-feed')).toContain('under the same key');
    expect(await textOf('#pg-feed')).toContain('charges: 1');
  });

  test('shows an error with its code and its recovery', async () => {
    await runs("await client.videos.create({ model: 'svc-video-fast', prompt: 'a fox', duration: 7 });");
    expect(await textOf('#pg-error')).toContain('duration_not_supported');
    await runs('await client.videos.create({ prompt: ');
    expect(await textOf('#pg-error')).toContain('SyntaxError');
  });

  test('sends nothing beyond the site, and breaks nothing', () => {
    const outside = requests.filter((url) => !url.startsWith(origin) && !/^(blob|data):/.test(url));
    expect(outside).toEqual([]);
    expect(complaints).toEqual([]);
  });
});

test.skipIf(!isBuilt)(
  'the site has its guides, the reference, the search index and the texts for language models',
  () => {
    for (const file of [
      'index.html',
      'waiting.html',
      'api/index.html',
      'api/storage.html',
      'llms.txt',
      'llms-full.txt',
      'waiting.md',
      'first-video.html',
    ])
      expect(existsSync(join(SITE, file)), file).toBe(true);
    expect(readFileSync(join(SITE, 'waiting.html'), 'utf8')).toContain('createAndWait');
  },
);
