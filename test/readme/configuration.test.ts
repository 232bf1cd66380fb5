// Compares the table of docs/configuration.md with GenClient's options and defaults.
import { readFileSync } from 'node:fs';
import { afterEach, expect, it, vi } from 'vitest';
import { readConfig } from '../../src/client/config.js';
import { GenClient } from '../../src/index.js';

const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');
const rows = [...page.matchAll(/^\| `(\w+)` \| (.+?) \|/gm)].map(
  ([, name = '', documented = '']) => [name, documented] as const,
);

/** Returns the option names, from the error for an unknown option. */
function knownOptions(): string[] {
  try {
    new GenClient({ zzzzzzzzzzzz: 1 } as never);
    return [];
  } catch (error) {
    return /Use one of (.*)\.$/.exec(String(error))?.[1]?.split(', ') ?? [];
  }
}

afterEach(() => vi.unstubAllEnvs());

it('every GenClient option has one row in the table', () => {
  expect(rows.map(([name]) => name).sort()).toEqual(knownOptions().sort());
});

// For clients in a page, see test/transport/config.test.ts.
it.each(rows.filter(([name]) => name !== 'dangerouslyAllowBrowser'))('the default of %s is %s', (name, documented) => {
  for (const variable of ['GEN_API_KEY', 'GEN_BASE_URL', 'GEN_WEBHOOK_SECRET', 'GEN_LOG']) vi.stubEnv(variable, '');
  const config = readConfig({});
  const { logger, level } = config.log();
  const [variable] = /GEN_\w+/.exec(documented) ?? [];
  if (variable !== undefined) vi.stubEnv(variable, variable === 'GEN_BASE_URL' ? 'https://host.test' : 'debug');
  const set = readConfig({});
  const defaults: Readonly<Record<string, unknown>> = {
    ...config,
    apiKey: set.apiKey(),
    baseUrl: set.knownBaseUrl(),
    webhookSecret: set.webhookSecrets()[0],
    logger,
    logLevel: variable === undefined ? level : set.log().level,
  };
  if (name === 'logLevel') expect([level, defaults.logLevel]).toEqual(['off', 'debug']);
  else if (variable !== undefined)
    expect(defaults[name]).toBe(variable === 'GEN_BASE_URL' ? 'https://host.test' : 'debug');
  else if (/^(none|the |this )/.test(documented))
    expect((name in defaults && defaults[name] === undefined) || isEmpty(defaults[name])).toBe(true);
  else expect(String(defaults[name])).toBe(documented.replace(/[`' ]/g, ''));
});

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}
