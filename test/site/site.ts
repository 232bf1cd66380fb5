// Serves the built site and opens it in Chromium. `npm run docs` builds it.
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { hasChromium, launch, type Page } from '../support/browser.js';
import { ROOT } from '../support/build.js';
import { PATIENCE_MS } from '../support/patience.js';

/** The folder of the built site. */
export const SITE = join(ROOT, 'docs/.vitepress/dist');
export const isBuilt = existsSync(join(SITE, 'playground.html'));
/** True if the site is built and Chromium is installed. */
export const canOpen = isBuilt && hasChromium;

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.txt': 'text/plain',
  '.svg': 'image/svg+xml',
};

/** A page of the site in Chromium, with its requests. */
export interface OpenSite {
  readonly page: Page;
  readonly origin: string;
  /** URLs of all requests. */
  readonly requests: readonly string[];
  /** Uncaught errors in the page. */
  readonly errors: readonly string[];
  /** Waits until an expression in the page is true. */
  until(expression: string): Promise<void>;
  textOf(selector: string): Promise<string>;
  close(): Promise<void>;
}

/** Serves the site and opens one of its pages. */
export async function openSite(path: string, viewport = { width: 1360, height: 900 }): Promise<OpenSite> {
  const server = createServer((request, response) => {
    const file = join(SITE, new URL(request.url ?? '/', 'http://site').pathname);
    if (!existsSync(file)) return void response.writeHead(404).end();
    const type = TYPES[extname(file)] ?? 'application/octet-stream';
    response.writeHead(200, { 'content-type': type }).end(readFileSync(file));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const browser = await launch();
  const page = await (await browser.newContext({ viewport })).newPage();
  const requests: string[] = [];
  const errors: string[] = [];
  page.on('request', (request) => void requests.push(request.url()));
  page.on('pageerror', (error) => void errors.push(String(error)));
  await page.goto(`${origin}/${path}`);
  return {
    page,
    origin,
    requests,
    errors,
    until: (expression) =>
      page.evaluate<void>(`new Promise((resolve, reject) => {
        const end = Date.now() + ${PATIENCE_MS};
        const check = () => (${expression}) ? resolve() : Date.now() > end ? reject(new Error(${JSON.stringify(expression)})) : setTimeout(check, 20);
        check();
      })`),
    textOf: (selector) =>
      page.evaluate<string>(`document.querySelector(${JSON.stringify(selector)})?.textContent ?? ''`),
    async close() {
      await browser.close();
      server.close();
    },
  };
}
