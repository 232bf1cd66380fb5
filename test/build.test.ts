// Code that bundlers can drop from the build.
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { markPure } from '../scripts/pure.js';

/** Returns the code that a bundler retains of a module without used exports. */
async function retainedCode(text: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: markPure(text), loader: 'ts' },
    bundle: true,
    write: false,
    format: 'esm',
  });
  return (outputFiles[0]?.text ?? '').replace(/^\/\/.*\n/gm, '').trim();
}

test.each([
  ['a call', 'const schema = object({ name: text().check(least(1)) });'],
  ['an object with a spread', 'const all = { ...one, two: 2 };'],
  ['a sum', 'const DAY = 24 * HOUR;'],
  ['a member of another object', 'const least = LIMITS.least;'],
  ['a class with a computed name', 'class Client<T> extends Base<T> { get [KEY]() { return 1; } }'],
])('a bundler drops %s if nothing uses it', async (_, text) => {
  const globals = 'const HOUR = 60, LIMITS = JSON.parse("{}"), KEY = Symbol.for("key"); class Base<T> {} ';
  expect(await retainedCode(`${globals}declare const one: object, object: any, text: any, least: any;\n${text}`)).toBe(
    '',
  );
});

test('a bundler retains intentional side effects', async () => {
  expect(await retainedCode("register('me');\nconst unused = make();")).toBe('register("me");');
});

test("a bundler retains a class's name, static members, and references to itself", async () => {
  const text =
    "const KEY = Symbol.for('key');\nclass Client { static made = () => new Client(); get [KEY]() { return 7; } }";
  const { outputFiles } = await build({
    stdin: { contents: `${markPure(text)}\nexport const results = [Client.name, Client.made()[KEY]];`, loader: 'ts' },
    bundle: true,
    write: false,
    format: 'esm',
  });
  const module: { results: unknown[] } = await import(
    `data:text/javascript,${encodeURIComponent(outputFiles[0]?.text ?? '')}`
  );
  expect(module.results).toEqual(['Client', 7]);
});
