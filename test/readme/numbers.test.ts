// The service's numbers in the documents, the comments and strings in src, and the demo match src/rules/limits.ts.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  CHARACTER_WIDTH,
  DOCUMENTED_LIMITS as LIMITS,
  MB,
  POLL_SHARE,
  UPLOAD_BYTES,
  USD_PER_TOKEN,
  VIDEO_POLL_MS,
  WEBHOOK_TOLERANCE_S,
} from '../../src/rules/limits.js';
import { ROOT } from '../support/build.js';
import { sourcesIn } from '../support/sources.js';
import { DOCUMENTS } from './blocks.js';

const OTHER_FILES = ['SECURITY.md', 'examples/demo.ts', 'docs/.vitepress/theme/playground/Playground.vue'];
const FILES = [...DOCUMENTS, ...OTHER_FILES, ...sourcesIn('src').map(({ path }) => path)];
/** Each file's content on one line, without comment markers. */
const contents = new Map(
  FILES.map((file) => [
    file,
    readFileSync(ROOT + file, 'utf8')
      .replace(/\n\s*(\*|\/\/) /g, ' ')
      .replace(/\s+/g, ' '),
  ]),
);

/** Patterns of sentences that state a number, and the expected number. */
const STATEMENTS: readonly (readonly [pattern: RegExp, expected: number])[] = [
  [/(\d+) videos(?=,| a minute| per minute)/g, LIMITS['videos.create'].limit],
  [/(\d+) (?:job reads|reads|polls)(?=,| a minute| per minute)/g, LIMITS['jobs.get'].limit],
  [/an eighth of them, (\d+) a minute/g, LIMITS['jobs.get'].limit * (1 - POLL_SHARE)],
  [/(\d+) downloads(?=,| a minute| per minute)/g, LIMITS['jobs.output'].limit],
  [/(\d+) each of creating/g, LIMITS['uploads.put'].limit],
  [/limits\(\)\['videos\.create'\]\); \/\/ \{ limit: (\d+)/g, LIMITS['videos.create'].limit],
  [/every (\d+) to 1[25] seconds/g, VIDEO_POLL_MS.min / 1000],
  [/(\d+) MB \(images\)|[Ii]mages (\d+) MB/g, UPLOAD_BYTES.IMAGE / MB],
  [/(\d+) MB \(videos\)|videos (\d+) MB/g, UPLOAD_BYTES.VIDEO / MB],
  [/(\d+) MB \(audio\)|audio (\d+) MB/g, UPLOAD_BYTES.AUDIO / MB],
  [/timestamp (\d+) seconds or more in the past/g, WEBHOOK_TOLERANCE_S],
  [/timestamp less than (\d+) seconds/g, WEBHOOK_TOLERANCE_S],
  [/past or the future\. @default (\d+)/g, WEBHOOK_TOLERANCE_S],
  [/toleranceSeconds = (\d+)/g, WEBHOOK_TOLERANCE_S],
  [/(\d+) px (?:wide|width)/g, CHARACTER_WIDTH],
  [/token (?:is|costs) ([\d.]+) USD/g, USD_PER_TOKEN],
  [/([\d.]+) (?:USD|dollars) each/g, USD_PER_TOKEN],
  [/USD_PER_TOKEN = ([\d.]+)/g, USD_PER_TOKEN],
];

test.each(STATEMENTS)('sentences that match %s state the documented number', (pattern, expected) => {
  const found = [...contents].flatMap(([file, page]) =>
    [...page.matchAll(pattern)].map(([, ...numbers]) => [file, Number(numbers.find((number) => number !== undefined))]),
  );
  expect(found).not.toEqual([]);
  expect(found.filter(([, stated]) => stated !== expected)).toEqual([]);
});

test('each upload step has one rate limit, as the guide states', () => {
  const steps = [LIMITS['uploads.create'], LIMITS['uploads.put'], LIMITS['uploads.delete']];
  expect(new Set(steps.map(({ limit }) => limit)).size).toBe(1);
});
