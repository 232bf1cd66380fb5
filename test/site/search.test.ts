// The built site's search in Chromium, and its reference pages.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as genClient from '../../src/index.js';
import { canOpen, isBuilt, type OpenSite, openSite, SITE } from './site.js';

describe.skipIf(!canOpen)("the site's search", () => {
  let site: OpenSite;

  beforeAll(async () => {
    site = await openSite('index.html');
    await site.until("document.querySelector('#local-search button') !== null");
    await site.page.click('#local-search button');
    await site.until("document.querySelector('#localsearch-input') !== null");
  });
  afterAll(() => site?.close());

  /** Returns the found pages, best first. */
  async function find(query: string): Promise<string[]> {
    await site.page.fill('#localsearch-input', '');
    await site.until("document.querySelectorAll('.VPLocalSearchBox .results a').length === 0");
    await site.page.fill('#localsearch-input', query);
    await site.until("document.querySelectorAll('.VPLocalSearchBox .results a').length > 0");
    return site.page.evaluate(
      "[...document.querySelectorAll('.VPLocalSearchBox .results a')].map((link) => link.getAttribute('href').replace(/\\.html.*/, ''))",
    );
  }

  test.each([
    ['typescript', 'quickstart'],
    ['lambda', 'recipes'],
    ['install', 'quickstart'],
    ['getting started', 'quickstart'],
    ['retry', 'limits-and-retries'],
    ['budget', 'budgets'],
    ['mcp', 'recipes'],
    ['webhook', 'webhooks'],
    ['upload', 'files'],
  ])('finds a guide for "%s" before reference members', async (query, guide) => {
    const found = await find(query);
    expect(found.slice(0, 10)).toContain(`/${guide}`);
    const firstMember = found.findIndex((page) => page.startsWith('/api/'));
    const lastGuide = found.findLastIndex((page) => !page.startsWith('/api/'));
    if (firstMember >= 0) expect(firstMember).toBeGreaterThan(lastGuide);
  });

  test('finds a reference member', async () => {
    expect(await find('BudgetExceededError')).toContainEqual(expect.stringMatching(/^\/api\//));
  });
});

describe.skipIf(!isBuilt)('the reference', () => {
  const reference = join(SITE, 'api/gen-client');

  test('has a page for each class', () => {
    const classes = Object.entries(genClient)
      .filter(([, value]) => typeof value === 'function' && /^class\b/.test(Function.prototype.toString.call(value)))
      .map(([name]) => `${name}.html`);
    expect(classes.length).toBeGreaterThan(20);
    expect(readdirSync(join(reference, 'classes')).sort()).toEqual(classes.sort());
    expect(readFileSync(join(reference, 'classes/GenClient.html'), 'utf8')).toContain('waitForJob');
  });

  test('has a page for each entry point, and links to it', () => {
    const { exports } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    const modules = Object.keys(exports)
      .filter((path) => path !== './package.json')
      .map((path) => path.replace('.', 'gen-client'));
    const home = readFileSync(join(reference, 'index.html'), 'utf8');
    for (const module of modules) {
      expect(existsSync(join(SITE, 'api', module, 'index.html')), module).toBe(true);
      expect(home, module).toContain(`href="/api/${module}/"`);
    }
  });
});
