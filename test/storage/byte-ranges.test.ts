import { expect, it } from 'vitest';
import { rangeIn } from '../../src/adapters/storage/output-response.js';

it.each<[string | undefined, ReturnType<typeof rangeIn>]>([
  ['bytes=0-9', { start: 0, end: 9 }],
  ['bytes=0-100', { start: 0, end: 99 }],
  ['bytes=0-99', { start: 0, end: 99 }],
  ['bytes=90-', { start: 90, end: 99 }],
  ['bytes=99-99', { start: 99, end: 99 }],
  ['bytes=100-', 'unsatisfiable'],
  ['bytes=-10', { start: 90, end: 99 }],
  ['bytes=-1000', { start: 0, end: 99 }],
  ['bytes=-0', 'unsatisfiable'],
  ['bytes=9-3', undefined],
  ['bytes=-', undefined],
  ['bytes=0-1,3-4', undefined],
  [undefined, undefined],
])('of 100 bytes, %s means %j', (header, range) => {
  expect(rangeIn(header, 100)).toEqual(range);
});
