// Which uploads are known: by the object, in this process.
import { describe, expect, it, vi } from 'vitest';
import { type KnownUpload, printOf, UploadMemory } from '../../src/uploading/upload-memory.js';
import { hash } from './loopback-service.js';

const params = { file_name: 'fox.png', mime_type: 'image/png', file_size: 5, upload_type: 'IMAGE' } as const;
const known = (id: string): KnownUpload => ({ id, params });
const _DAY_MS = 86_400_000;

describe('the uploads of a process', () => {
  const lookup = { print: 'as it was' };
  const uploadsOf = (memory: UploadMemory, source: unknown) => {
    let made = 0;
    return () => memory.use(source, lookup, async () => known(`upl_${++made}`));
  };

  it('are known by the object and what it contained', async () => {
    const memory = new UploadMemory(true);
    const file = {};
    expect(await memory.find(file, lookup)).toBeUndefined();
    const use = await memory.use(file, lookup, async () => known('upl_1'));
    expect(use).toMatchObject({ id: 'upl_1', isOld: false });
    expect(await memory.find(file, lookup)).toEqual({ id: 'upl_1', params });
    expect(await memory.find(file, { print: 'changed' })).toBeUndefined();
    expect(await memory.find({}, lookup)).toBeUndefined();
    expect(await uploadsOf(memory, file)()).toMatchObject({ id: 'upl_1', isOld: true });
  });

  it('are to be deleted after the last use, where one was unwanted and none is kept', async () => {
    const memory = new UploadMemory(true);
    const file = {};
    const use = uploadsOf(memory, file);
    const [first, second] = [await use(), await use()];
    expect([first.end('unwanted'), second.end('unwanted')]).toEqual([false, true]);
    expect(await memory.find(file, lookup)).toBeUndefined();
    const [third, fourth] = [await use(), await use()];
    expect([third.id, fourth.id, third.end('kept'), fourth.end('unwanted')]).toEqual(['upl_2', 'upl_2', false, false]);
    expect(await memory.find(file, lookup)).toMatchObject({ id: 'upl_2' });
  });

  it('that were deleted are made again, and the end of a call with the old one does not touch the new one', async () => {
    const memory = new UploadMemory(true);
    const file = {};
    const use = uploadsOf(memory, file);
    const old = await use();
    memory.deleted('upl_1');
    expect(await memory.find(file, lookup)).toBeUndefined();
    expect((await use()).id).toBe('upl_2');
    expect(old.end('unwanted')).toBe(true);
    old.forget();
    expect(await memory.find(file, lookup)).toMatchObject({ id: 'upl_2' });
  });

  it('are remembered as deleted for the last ten thousand deletions, so that memory does not grow', async () => {
    const memory = new UploadMemory(true);
    const file = {};
    await uploadsOf(memory, file)();
    memory.deleted('upl_1');
    for (let at = 1; at < 10_000; at++) memory.deleted(`other_${at}`);
    expect(await memory.find(file, lookup)).toBeUndefined();
    memory.deleted('one_more');
    expect(await memory.find(file, lookup)).toMatchObject({ id: 'upl_1' });
  });

  it('that fail are not known, and the next call makes its own', async () => {
    const memory = new UploadMemory(true);
    const file = {};
    await expect(memory.use(file, lookup, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await uploadsOf(memory, file)()).toMatchObject({ id: 'upl_1', isOld: false });
  });

  it('of a function are made for each call', async () => {
    const memory = new UploadMemory(true);
    const upload = vi.fn(async () => known('upl_1'));
    const print = await printOf(() => new Blob([]).stream());
    expect(print).toBeUndefined();
    for (let at = 0; at < 2; at++) await memory.use(() => {}, { print }, upload);
    expect(upload).toHaveBeenCalledTimes(2);
  });
});

describe('what tells whether an object has changed', () => {
  const bytes = Uint8Array.from([0, 1, 2, 3, 250]);

  it.each<[string, (from: Uint8Array<ArrayBuffer>) => unknown]>([
    ['bytes', (from) => from],
    ['an ArrayBuffer', (from) => from.slice().buffer],
    ['a view of a part', (from) => new DataView(Uint8Array.from([9, ...from, 9]).buffer, 1, from.length)],
    ['a view of shared memory', (from) => shared(from)],
    ['shared memory itself', (from) => shared(from).buffer],
  ])('is the digest of %s', async (_, make) => {
    expect(await printOf(make(bytes))).toBe(hash(bytes));
  });

  it('is the size and the time of a file, and nothing is read', async () => {
    const stream = vi.fn();
    expect(await printOf({ size: 7, lastModified: 9, stream })).toBe('7:9');
    expect(await printOf(new File(['fox'], 'fox.txt', { lastModified: 5 }))).toBe('3:5');
    expect(stream).not.toHaveBeenCalled();
  });

  it.each(['upl_1', undefined, null, 7])('is nothing for %j', async (source) => {
    expect(await printOf(source)).toBeUndefined();
  });

  function shared(from: Uint8Array): Uint8Array {
    const view = new Uint8Array(new SharedArrayBuffer(from.length));
    view.set(from);
    return view;
  }
});
