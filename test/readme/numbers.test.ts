// The numbers of the service that README and the guides state, against src/rules/limits.ts.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  DOCUMENTED_LIMITS as LIMITS,
  MB,
  READ_SHARE,
  UPLOAD_BYTES,
  USD_PER_TOKEN,
  VIDEO_POLL_MS,
  WEBHOOK_TOLERANCE_S,
} from '../../src/rules/limits.js';
import { ROOT } from '../support/build.js';
import { PAPERS } from './blocks.js';

const text = new Map(PAPERS.map((file) => [file, readFileSync(ROOT + file, 'utf8').replace(/\s+/g, ' ')]));
const sizes = (['IMAGE', 'VIDEO', 'AUDIO'] as const).map((kind) => UPLOAD_BYTES[kind] / MB);

/** A sentence that states numbers, and what they are. Each stands on at least one page. */
const STATED: readonly (readonly [sentence: RegExp, numbers: readonly number[]])[] = [
  [
    /(\d+) videos, (\d+) job reads, (\d+) downloads and (\d+) of each upload step a minute/g,
    (['videos.create', 'jobs.get', 'jobs.output', 'uploads.put'] as const).map((name) => LIMITS[name].limit),
  ],
  [/\b(\d+) reads a minute/g, [LIMITS['jobs.get'].limit]],
  [/limits\(\)\['videos\.create'\]\); \/\/ \{ limit: (\d+)/g, [LIMITS['videos.create'].limit]],
  [/an (eighth) of them is left for your own/g, [1 - READ_SHARE]],
  [/video is read every (\d+) to 12 seconds/g, [VIDEO_POLL_MS.least / 1000]],
  [/files over (\d+) MB \(images\), (\d+) MB \(videos\) and (\d+) MB \(audio\)/g, sizes],
  [/Images (\d+) MB, videos (\d+) MB, audio (\d+) MB/g, sizes],
  [/timestamp (\d+) seconds or more away/g, [WEBHOOK_TOLERANCE_S]],
  [/token is ([\d.]+) USD/g, [USD_PER_TOKEN]],
];
const numberOf = (word: string) => (word === 'eighth' ? 1 / 8 : Number(word));

test.each(STATED)('%s states the numbers of the rules', (sentence, numbers) => {
  const found = [...text].flatMap(([file, page]) =>
    [...page.matchAll(sentence)].map(([, ...words]) => [file, ...words.map(numberOf)]),
  );
  expect(found).not.toEqual([]);
  for (const [file, ...stated] of found) expect(stated, String(file)).toEqual(numbers);
});

test('the uploads of each step have one limit, as the guide says', () => {
  expect(
    new Set([LIMITS['uploads.create'], LIMITS['uploads.put'], LIMITS['uploads.delete']].map(({ limit }) => limit)).size,
  ).toBe(1);
});
