// The built site in Chromium: no page is wider than the screen, and table rows are blocks on a phone.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROOT } from '../support/build.js';
import { canOpen, type OpenSite, openSite, SITE } from './site.js';

const PHONE = { width: 390, height: 844 };

const TABLES = `(() => {
  const cells = [...document.querySelectorAll('.vp-doc td')].filter(({ offsetWidth }) => offsetWidth > 0);
  return {
    width: document.documentElement.scrollWidth,
    blocks: cells.every((cell) => getComputedStyle(cell).display === 'block'),
    labeled: cells.filter(({ dataset }) => dataset.label).length,
    wide: cells.filter((cell) => cell.getBoundingClientRect().right > ${PHONE.width} || cell.scrollWidth > cell.clientWidth).length,
  };
})()`;

/** The home page's parts that are invisible or whose text overflows. */
const HIDDEN_OR_OVERFLOWING = `['.VPHero .name', '.VPHero .text', '.VPHero .tagline', '.VPHero .VPButton', '.hero-code pre', '.VPFeature'].filter((part) =>
  ![...document.querySelectorAll(part)].some(({ offsetHeight, scrollWidth, clientWidth }) => offsetHeight > 0 && scrollWidth <= clientWidth + 1))`;

describe.skipIf(!canOpen)('the site', () => {
  let site: OpenSite;
  beforeAll(async () => {
    site = await openSite('index.html', PHONE);
  });
  afterAll(() => site?.close());
  const widthOfPage = () => site.page.evaluate<number>('document.documentElement.scrollWidth');

  test.each([320, 768, 1440])('fits the home page into a width of %i px', async (width) => {
    await site.page.setViewportSize({ width, height: 900 });
    await site.until(`innerWidth === ${width}`);
    expect([await site.page.evaluate(HIDDEN_OR_OVERFLOWING), await widthOfPage()]).toEqual([[], width]);
    await site.page.setViewportSize(PHONE);
  });

  test.each(['errors', 'configuration', 'calls', 'api/index', 'api/gen-client/storage/index'])(
    'shows each table row of %s as a block that fits a phone',
    async (page) => {
      await site.page.goto(`${site.origin}/${page}.html`);
      await site.until("document.querySelector('.vp-doc td') !== null");
      const found = await site.page.evaluate<{ width: number; blocks: boolean; labeled: number; wide: number }>(TABLES);
      expect(found).toMatchObject({ width: PHONE.width, blocks: true, wide: 0 });
      expect(found.labeled).toBeGreaterThan(5);
    },
  );

  test('has no page that is wider than a phone', { timeout: 600_000 }, async () => {
    const pages = readdirSync(SITE).filter((file) => file.endsWith('.html'));
    const guides = readdirSync(join(ROOT, 'docs')).filter((file) => file.endsWith('.md'));
    expect(pages.length).toBeGreaterThanOrEqual(guides.length);
    const wide: string[] = [];
    for (const path of [...pages, 'api/gen-client/classes/GenClient.html', 'api/gen-client/sandbox/index.html']) {
      await site.page.goto(`${site.origin}/${path}`);
      const width = await widthOfPage();
      if (width > PHONE.width) wide.push(`${path}: ${width} px`);
    }
    expect(wide).toEqual([]);
  });
});
