// The built site's playground in Chromium. Run `npm run docs` first.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, type Page } from '../support/browser.js';
import { canOpen, isBuilt, type OpenSite, openSite, SITE } from './site.js';

test.runIf(process.env.CI)('the site was built and Chromium is installed', () => {
  expect({ isBuilt, hasChromium }).toEqual({ isBuilt: true, hasChromium: true });
});

describe.skipIf(!canOpen)('the playground', { timeout: 300_000 }, () => {
  let site: OpenSite;
  let page: Page;

  beforeAll(async () => {
    site = await openSite('playground.html');
    page = site.page;
  });
  afterAll(() => site?.close());

  const until = (expression: string) => site.until(expression);
  const textOf = (selector: string) => site.textOf(selector);
  const spent = async () => Number(await textOf('#pg-spent'));
  const runProgram = async (program: string) => {
    await page.fill('#pg-code', program);
    await page.click('#pg-run');
    await until("['done', 'failed'].includes(document.querySelector('.pg').dataset.state)");
  };

  test('creates the image that its controls describe, and shows its webhook and charge', async () => {
    await until("document.querySelector('#pg-run') !== null");
    await page.click('[data-tab=images]');
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

  test('runs an edited program and plays the video', async () => {
    const spentBefore = await spent();
    await runProgram(`import { isCompleted } from 'gen-client';
      sandbox.outcomes.next({ durationMs: 0 });
      const job = await client.videos.createAndWait({ prompt: 'a fox', duration: 4, aspect_ratio: '9:16' });
      console.log('completed:', isCompleted(job));
      await show(job);`);
    await until("document.querySelector('#pg-video')?.currentTime > 0");
    expect(await textOf('#pg-feed')).toContain('completed: true');
    expect(await spent()).toBeGreaterThan(spentBefore);
  });

  test('charges one job if the first response is lost', async () => {
    const jobs = "sandbox.ledger().entries.filter(({ type }) => type === 'charge').length";
    await runProgram(`const before = ${jobs};
      sandbox.faults.add({ match: { path: '/v1/videos' }, commitThenDrop: true });
      sandbox.outcomes.next({ durationMs: 0 });
      await client.videos.createAndWait({ prompt: 'a fox' });
      console.log('charges:', ${jobs} - before);`);
    expect(await textOf('#pg-feed')).toContain('with the same key');
    expect(await textOf('#pg-feed')).toContain('charges: 1');
  });

  test('shows the code of an error, and a syntax error', async () => {
    await runProgram("await client.videos.create({ model: 'svc-video-fast', prompt: 'a fox', duration: 7 });");
    expect(await textOf('#pg-error')).toContain('duration_not_supported');
    await runProgram('await client.videos.create({ prompt: ');
    expect(await textOf('#pg-error')).toContain('SyntaxError');
  });

  describe('the page in its tab', () => {
    const FRAME = "document.querySelector('#pg-frame').contentDocument";
    let cost = 0;
    const run = (selector = '') => `${FRAME}?.querySelector('.pf-run${selector}')`;

    test("uploads an image, and creates and plays a video, through the tab's proxy", async () => {
      const spentBefore = await spent();
      await page.click('[data-tab=page]');
      await until(`${FRAME}?.querySelector('#pf-draw')`);
      await page.evaluate(`${FRAME}.querySelector('#pf-draw').click()`);
      await until(`${FRAME}.querySelector('.pf-row img')?.naturalWidth > 0`);
      await page.evaluate(`${FRAME}.querySelector('#pf-create').click()`);
      await until(`${run()}?.querySelector('progress')?.value > 0.2`);
      await until(`${run(' video')}?.currentTime > 0`);
      expect(await page.evaluate(`${run()}.dataset.phases`)).toBe('uploading creating waiting done');
      const feed = await textOf('#pg-feed');
      for (const route of ['upload', 'bytes', 'uploaded', 'videos', 'watch', 'file'])
        expect(feed).toContain(`/api/gen/${route} → 200`);
      await expect.poll(spent).toBeGreaterThan(spentBefore);
      cost = (await spent()) - spentBefore;
    });

    test('follows the same job after a reload, and removes it on request', async () => {
      const spentBefore = await spent();
      await page.evaluate(`${FRAME}.querySelector('#pf-create').click()`);
      await until(`${run('[data-phase=waiting]')}`);
      // Marks the old document, to detect the new one.
      await page.evaluate(`${FRAME}.documentElement.dataset.old = ''`);
      await page.click('#pg-reload');
      await until(`${FRAME}?.documentElement?.dataset.old === undefined`);
      // The first video, and the one in flight.
      await until(`${FRAME}?.querySelectorAll('.pf-run').length === 2`);
      await until(`${FRAME}.querySelectorAll('.pf-run video').length === 2`);
      // The bill updates shortly after.
      await expect.poll(spent).toBe(spentBefore + cost);
      await page.evaluate(`${FRAME}.querySelectorAll('.pf-end').forEach((button) => button.click())`);
      await page.click('#pg-reload');
      await until(`${FRAME}?.querySelector('.pf-none')?.textContent === 'No videos yet.'`);
      expect(await spent()).toBe(spentBefore + cost);
    });
  });

  test('sends nothing to other sites and has no errors', () => {
    const { requests, origin, errors } = site;
    const outside = requests.filter((url) => !url.startsWith(origin) && !/^(blob|data):/.test(url));
    expect(outside).toEqual([]);
    expect(requests.filter((url) => url.includes('/api/gen'))).toEqual([]);
    expect(errors).toEqual([]);
  });
});

test.skipIf(!isBuilt)(
  'the site includes the guides, the reference, the search index, and files for language models',
  () => {
    const pages = [
      'index.html',
      'waiting.html',
      'quickstart.html',
      'api/index.html',
      'api/gen-client/storage/index.html',
    ];
    for (const file of [...pages, 'waiting.md', 'llms.txt', 'llms-full.txt'])
      expect(existsSync(join(SITE, file)), file).toBe(true);
    expect(readFileSync(join(SITE, 'waiting.html'), 'utf8')).toContain('createAndWait');
  },
);
