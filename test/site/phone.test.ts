// Pages of the site on a phone: tables are blocks, and nothing is wider than the screen.
import { afterEach, describe, expect, test } from 'vitest';
import { canOpen, type OpenSite, openSite } from './site.js';

const TABLES = `(() => {
  const cells = [...document.querySelectorAll('.vp-doc td')].filter(({ offsetWidth }) => offsetWidth > 0);
  return {
    width: document.documentElement.scrollWidth,
    blocks: cells.every((cell) => getComputedStyle(cell).display === 'block'),
    named: cells.filter(({ dataset }) => dataset.label).length,
    wide: cells.filter((cell) => cell.getBoundingClientRect().right > 390 || cell.scrollWidth > cell.clientWidth).length,
  };
})()`;

describe.skipIf(!canOpen)('at 390 px', () => {
  let site: OpenSite | undefined;
  afterEach(() => site?.close());

  test.each(['errors', 'configuration', 'calls', 'api/index', 'api/gen-client/storage/index'])(
    'each row of a table of %s is a block that fits',
    async (page) => {
      site = await openSite(`${page}.html`, { width: 390, height: 844 });
      await site.until("document.querySelector('.vp-doc td') !== null");
      const found = await site.page.evaluate<{ width: number; blocks: boolean; named: number; wide: number }>(TABLES);
      expect(found).toMatchObject({ width: 390, blocks: true, wide: 0 });
      expect(found.named).toBeGreaterThan(5);
    },
  );
});
