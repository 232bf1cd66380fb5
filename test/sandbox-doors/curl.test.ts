import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { toCurl } from '../../src/sandbox/control/curl.js';
import { quote } from '../../src/schemas/show.js';

it('quotes any text so that a shell hands it on unchanged, and runs nothing of it', async () => {
  const texts = fc.sample(fc.string({ unit: 'grapheme', maxLength: 40 }), { seed: 1, numRuns: 200 });
  const known = [
    "it's",
    '$(touch /tmp/owned)',
    '`id`',
    'a\nb',
    '!!',
    '\\',
    '"',
    '*',
    '~',
    '-n',
    '',
    '; true',
    '&&',
    '%s',
  ];
  const plain = [...known, ...texts].map((text) => text.replace(/[^\P{Cc}\t\n]/gu, ''));
  const script = `printf '%s\\0' ${plain.map(quote).join(' ')}`;
  const { stdout } = await promisify(execFile)('sh', ['-c', script]);
  expect(stdout.split('\0').slice(0, -1)).toEqual(plain);
});

it('drops control characters, which no terminal should get to see', () => {
  expect(quote('a\u001b[31m\u0007b\u009b')).toBe("'a[31mb'");
});

it('leaves out what curl sets itself and keeps the rest', () => {
  const headers = { host: 'x', 'user-agent': 'x', 'sec-fetch-mode': 'cors', 'idempotency-key': 'k 1', accept: '*/*' };
  expect(toCurl({ method: 'POST', url: 'http://x.test/v1/a?b=c', headers, body: '{"a":1}' })).toBe(
    `curl -X POST 'http://x.test/v1/a?b=c' -H 'idempotency-key: k 1' --data-raw '{"a":1}'`,
  );
  expect(toCurl({ method: 'HEAD', url: 'http://x.test/', headers: {} })).toBe('curl --head http://x.test/');
});
