// The home page in Chromium at every width. Its pictures are in test/site/pictures, for people to look at.
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROOT } from '../support/build.js';
import { canOpen, type OpenSite, openSite, SITE } from './site.js';

const PICTURES = fileURLToPath(new URL('./pictures/', import.meta.url));
/** From a small phone to a wide screen. */
const WIDTHS = [320, 360, 480, 640, 768, 959, 960, 1151, 1152, 1280, 1440, 1920, 2560];
const PICTURED = [360, 768, 1440];

/** What is where on the page, in pixels. */
interface Layout {
  readonly scrollWidth: number;
  /** Boxes of the parts that a visitor reads. A part that is not shown has none. */
  readonly boxes: readonly { readonly name: string; readonly box: Box }[];
  /** Parts whose text does not fit. */
  readonly cut: readonly string[];
}

interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

const LAYOUT = `(() => {
  const parts = { bar: '.VPNavBar', name: '.VPHero .name', text: '.VPHero .text', tagline: '.VPHero .tagline',
    actions: '.VPHero .VPButton', code: '.hero-code', features: '.VPHomeFeatures .items' };
  const shown = Object.entries(parts).flatMap(([name, selector]) => {
    const rects = [...document.querySelectorAll(selector)].map((element) => element.getBoundingClientRect());
    const box = {
      left: Math.min(...rects.map(({ left }) => left)), right: Math.max(...rects.map(({ right }) => right)),
      top: Math.min(...rects.map(({ top }) => top)), bottom: Math.max(...rects.map(({ bottom }) => bottom)),
    };
    return box.right > box.left && box.bottom > box.top ? [{ name, box }] : [];
  });
  const cut = [...document.querySelectorAll('.hero-code pre, .VPHero .text, .VPHero .tagline, .VPFeature')]
    .filter((element) => element.scrollWidth > element.clientWidth + 1).map((element) => element.className || element.tagName);
  return { scrollWidth: document.documentElement.scrollWidth, boxes: shown, cut };
})()`;

/** Pairs of parts that lie over each other. */
function overlaps({ boxes }: Layout): string[] {
  const isOver = (a: Box, b: Box) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  return boxes.flatMap((one, at) =>
    boxes
      .slice(at + 1)
      .filter((other) => isOver(one.box, other.box))
      .map((other) => `${one.name} and ${other.name}`),
  );
}

describe.skipIf(!canOpen)('the home page', () => {
  let site: OpenSite;

  beforeAll(async () => {
    mkdirSync(PICTURES, { recursive: true });
    site = await openSite('index.html');
  });
  afterAll(() => site?.close());

  describe.each(['light', 'dark'] as const)('in %s', (colorScheme) => {
    test.each(WIDTHS)('shows the title and the code side by side or below each other, %i px wide', async (width) => {
      await site.page.setViewportSize({ width, height: 900 });
      await site.page.emulateMedia({ colorScheme });
      await site.until(
        `innerWidth === ${width} && document.documentElement.classList.contains('dark') === ${colorScheme === 'dark'}`,
      );
      const layout = await site.page.evaluate<Layout>(LAYOUT);
      if (PICTURED.includes(width))
        await site.page.screenshot?.({ path: `${PICTURES}home-${width}-${colorScheme}.png` });
      expect(layout.boxes.map(({ name }) => name)).toEqual([
        'bar',
        'name',
        'text',
        'tagline',
        'actions',
        'code',
        'features',
      ]);
      expect(layout.scrollWidth).toBeLessThanOrEqual(width);
      for (const { name, box } of layout.boxes) {
        expect(box.left, name).toBeGreaterThanOrEqual(0);
        expect(box.right, name).toBeLessThanOrEqual(width);
      }
      expect(overlaps(layout)).toEqual([]);
      expect(layout.cut).toEqual([]);
    });

    test('has text that can be read on its background', async () => {
      const contrasts = await site.page.evaluate<Record<string, number>>(`(() => {
        const channels = (color) => color.match(/[\\d.]+/g).map(Number);
        const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
          .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
        const ground = (element) => {
          for (let at = element; at; at = at.parentElement) {
            const color = channels(getComputedStyle(at).backgroundColor);
            if (color[3] !== 0) return color;
          }
          return channels(getComputedStyle(document.body).backgroundColor);
        };
        const parts = ['.VPHero .text', '.VPHero .tagline', '.hero-code pre', '.hero-code s', '.hero-code b', '.hero-code p', '.VPButton.brand', '.VPFeature .details'];
        return Object.fromEntries(parts.map((selector) => {
          const element = document.querySelector(selector);
          const [a, b] = [light(channels(getComputedStyle(element).color)), light(ground(element))].sort((x, y) => y - x);
          return [selector, (a + 0.05) / (b + 0.05)];
        }));
      })()`);
      for (const [part, contrast] of Object.entries(contrasts)) expect(contrast, part).toBeGreaterThanOrEqual(4.5);
    });
  });
});

test.skipIf(!canOpen)('no page of the site is wider than a small phone', { timeout: 600_000 }, async () => {
  const site = await openSite('index.html', { width: 360, height: 740 });
  const pages = readdirSync(SITE).filter((file) => file.endsWith('.html'));
  const classPage = 'api/gen-client/classes/GenClient.html';
  const guides = readdirSync(join(ROOT, 'docs')).filter((file) => file.endsWith('.md'));
  expect(pages.length).toBeGreaterThanOrEqual(guides.length);
  const wide: string[] = [];
  for (const path of [...pages, classPage, 'api/gen-client/sandbox/index.html']) {
    await site.page.goto(`${site.origin}/${path}`);
    const width = await site.page.evaluate<number>('document.documentElement.scrollWidth');
    if (width > 360) wide.push(`${path}: ${width} px`);
  }
  await site.close();
  expect(wide).toEqual([]);
});
