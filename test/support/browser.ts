import { findTool } from './real-tools.js';

/** The part of Playwright's API that the tests use. Playwright isn't installed at the root. */
export interface Page {
  goto(url: string): Promise<unknown>;
  evaluate<T>(script: string): Promise<T>;
  addInitScript(script: string): Promise<void>;
  click(selector: string): Promise<void>;
  fill(selector: string, text: string): Promise<void>;
  selectOption(selector: string, value: string): Promise<unknown>;
  setViewportSize(size: { width: number; height: number }): Promise<void>;
  screenshot?(options: { readonly path: string }): Promise<unknown>;
  keyboard: { press(key: string): Promise<void> };
  on(event: 'console' | 'pageerror' | 'request', listener: (event: { text(): string; url(): string }) => void): void;
}

/** A browser profile with its own cookies. */
export interface Context {
  newPage(): Promise<Page>;
  waitForEvent(event: 'page'): Promise<Page>;
  setOffline(isOffline: boolean): Promise<void>;
  clearCookies(): Promise<void>;
  close(): Promise<void>;
}

/** A running browser. */
export interface Browser {
  newContext(options: object): Promise<Context>;
  close(): Promise<void>;
}

const playwright = findTool('playwright-core');
const chromium = findTool('chromium');
const FLAGS =
  '--no-sandbox --disable-dev-shm-usage --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-sync --disable-component-update';

/** True if Playwright and Chromium are installed. */
export const hasChromium = playwright !== undefined && chromium !== undefined;

/** Starts Chromium with the back/forward cache, which playwright disables by default. */
export async function launch(): Promise<Browser> {
  const { chromium: engine } = await import(playwright ?? '');
  return engine.launch({
    executablePath: chromium,
    args: FLAGS.split(' '),
    ignoreDefaultArgs: ['--disable-back-forward-cache'],
  });
}
