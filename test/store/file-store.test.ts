import { type ChildProcess, execFile, spawn } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { build } from 'esbuild';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { readFileStore } from '../../src/adapters/node/file-store.js';
import { fileStore } from '../../src/adapters/node/index.js';
import { leasesOf } from '../../src/store/port.js';
import type { Store } from '../../src/store/store.js';
import { ROOT } from '../support/build.js';

const WEEK_MS = 604_800_000;
const run = promisify(execFile);
const set = (value: string, ttlMs = WEEK_MS) => ({ value, ttlMs });

let folder = '';
let path = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gen-store-'));
  path = join(folder, 'gen.store');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function put(store: Store, group: string, key: string, value: string, ttlMs = WEEK_MS) {
  const { version } = await store.read(group, []);
  expect(await store.write(group, version, { [key]: set(value, ttlMs) })).toBe(true);
}

async function valueIn(store: Store, group: string, key: string) {
  return (await store.read(group, [key])).values[key];
}

const failure = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: Error & { recovery?: string }) => error,
  );

/** A program of this folder, as one file that Node runs. */
async function programOf(source: string): Promise<string> {
  const outfile = join(folder, 'program.mjs');
  const entryPoints = [join(ROOT, source)];
  await build({ entryPoints, outfile, bundle: true, platform: 'node', format: 'esm', logLevel: 'error' });
  return outfile;
}

const ended = (child: ChildProcess) => new Promise((resolve) => child.once('exit', resolve));

describe('what is written', () => {
  it('is there after the file was closed and opened again, with its time to live and its version', async () => {
    const store = fileStore(path);
    await put(store, 'g', 'a', '1');
    await put(store, 'g', 'b', 'ü🦊\n"');
    await put(store, 'g', 'short', 'gone', 5);
    const { version } = await store.read('g', []);
    await store.close();
    await vi.waitFor(async () => expect(await valueIn(store, 'g', 'short')).toBeUndefined());
    const seen = await fileStore(path).read('g', ['a', 'b', 'short']);
    expect({ ...seen.values }).toEqual({ a: '1', b: 'ü🦊\n"' });
    expect(seen.version).toBe(version);
  });

  it('never takes a version that a forgotten group had', async () => {
    const store = fileStore(path);
    await put(store, 'g', 'a', '1');
    const old = (await store.read('g', [])).version;
    await store.write('g', old, { a: null });
    await store.close();
    for (let at = 0; at < 5; at++) {
      await put(store, 'g', 'b', String(at));
      expect((await store.read('g', [])).version).not.toBe(old);
    }
  });

  it('is readable by the owner only, also in a file that was open to others', async () => {
    await put(fileStore(path), 'g', 'a', '1');
    await fileStore(path).close();
    chmodSync(path, 0o644);
    await put(fileStore(path), 'g', 'a', '2');
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('is the same for every store of one file in a process, by whichever path', async () => {
    const store = fileStore(path);
    await put(store, 'g', 'a', '1');
    const link = join(folder, 'link');
    symlinkSync(path, link);
    const { version } = await fileStore(pathToFileURL(link)).read('g', []);
    expect(await fileStore(path).write('g', version, { a: set('2') })).toBe(true);
    expect(await store.write('g', version, { a: set('3') })).toBe(false);
    expect(await valueIn(store, 'g', 'a')).toBe('2');
  });

  it('stays small: the file compacts itself, and everything that is alive stays', async () => {
    const store = fileStore(path);
    await put(store, 'kept', 'k', 'v');
    const text = 'x'.repeat(1_000);
    for (let at = 0; at < 400; at++) await put(store, `g${at % 3}`, 'n', `${text}${at}`);
    expect(statSync(path).size).toBeLessThan(140_000);
    expect(readdirSync(folder).sort()).toEqual(['gen.store', 'gen.store.lock']);
    await store.close();
    expect(await valueIn(store, 'kept', 'k')).toBe('v');
    expect(await valueIn(store, 'g0', 'n')).toBe(`${text}399`);
  });

  it('keeps all that is written while the file is compacted', async () => {
    const store = fileStore(path);
    const text = 'x'.repeat(500);
    const groups = Array.from({ length: 600 }, (_, at) => `g${at}`);
    for (let round = 0; round < 3; round++)
      await Promise.all(groups.map((group) => put(store, group, 'n', `${text}${round}`)));
    await store.close();
    const found = await Promise.all(groups.map((group) => valueIn(store, group, 'n')));
    expect(found).toEqual(groups.map(() => `${text}2`));
  });

  it('notifies within the process', async () => {
    const heard = vi.fn();
    fileStore(path).subscribe('jobs', heard);
    await fileStore(path).publish('jobs', 'm');
    expect(heard).toHaveBeenCalledWith('m');
  });
});

describe('a crash', () => {
  it('leaves a line that was cut: all before it counts, and the next write is whole', async () => {
    const store = fileStore(path);
    await put(store, 'g', 'a', '1');
    await store.close();
    appendFileSync(path, '{"group":"g","version":9,"values":{"a":["2",99');
    expect(await valueIn(readFileStore(path), 'g', 'a')).toBe('1');
    await put(store, 'g', 'b', '2');
    await store.close();
    expect(
      readFileSync(path, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toHaveLength(3);
    expect((await store.read('g', ['a', 'b'])).values).toEqual({ a: '1', b: '2' });
  });

  it('leaves a damaged line in the middle: the others count', async () => {
    const store = fileStore(path);
    await put(store, 'g', 'a', '1');
    await store.close();
    appendFileSync(path, '\0\0\0\n');
    await put(store, 'h', 'b', '2');
    await store.close();
    expect([await valueIn(store, 'g', 'a'), await valueIn(store, 'h', 'b')]).toEqual(['1', '2']);
  });

  it('by SIGKILL at any moment, compaction included, loses nothing that a write has promised (real processes)', async () => {
    const program = await programOf('test/store/store-process.ts');
    let promised = 0;
    for (let kill = 0; kill < 6; kill++) {
      const child = spawn(process.execPath, [program, path]);
      let output = '';
      child.stdout.on('data', (chunk) => {
        output += chunk;
      });
      const enough = promised + 40 + kill * 13;
      await vi.waitFor(() => expect(output.split('\n').length + promised).toBeGreaterThan(enough), 20_000);
      child.kill('SIGKILL');
      await ended(child);
      promised = Math.max(promised, ...output.split('\n').slice(0, -1).map(Number));
      const found = Number(await valueIn(readFileStore(path), 'g', 'n'));
      expect(found).toBeGreaterThanOrEqual(promised);
      expect(await valueIn(readFileStore(path), 'g', 'text')).toMatch(new RegExp(`^x{2000}${found}$`));
    }
  }, 120_000);
});

describe('a second process', () => {
  it('is refused while the first one lives, and not when it was killed; reading is allowed to all (real processes)', async () => {
    const program = await programOf('test/store/store-process.ts');
    const child = spawn(process.execPath, [program, path]);
    await new Promise((resolve) => child.stdout.once('data', resolve));
    const refused = await failure(fileStore(path).read('g', []));
    expect(refused?.message).toContain(`process ${child.pid} is using "${path}"`);
    expect(refused?.recovery).toBe('fix_setup');
    expect(Number(await valueIn(readFileStore(path), 'g', 'n'))).toBeGreaterThan(0);
    child.kill('SIGKILL');
    await ended(child);
    expect(existsSync(`${path}.lock`)).toBe(true);
    await put(fileStore(path), 'g', 'a', '1');
  });

  it.each([
    ['a living process that began at another time', process.ppid, '/1'],
    ['a thread of this process', Number(readdirSync('/proc/self/task').find((id) => id !== String(process.pid))), '/1'],
    ['this process in its life before', process.pid, '/1'],
    ['a process that is gone', 2 ** 22 + 1, ''],
  ])('does not count when its pid now belongs to %s', async (_, pid, start) => {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    writeFileSync(`${path}.lock`, `${pid}@${hostname()} ${start && `${boot}${start}`}\n`);
    await put(fileStore(path), 'g', 'a', '1');
  });

  it('that writes all the same is noticed, and nothing is mixed', async () => {
    const store = fileStore(path);
    await put(store, 'g', 'a', '1');
    appendFileSync(path, '{"group":"g","version":2,"values":{}}\n');
    const { version } = await store.read('g', []);
    expect((await failure(store.write('g', version, { a: set('2') })))?.message).toContain(
      'another program has changed',
    );
  });

  it('as a thread of the same process is refused, too', async () => {
    await put(fileStore(path), 'g', 'a', '1');
    const program = await programOf('test/store/store-process.ts');
    const worker = new Worker(program, { argv: [path] });
    const error = await new Promise<Error>((resolve) => worker.once('error', resolve));
    expect(error.message).toContain('another thread of this process is using');
  });

  it('may come when the first one has ended: nothing but the file is left behind (real processes)', async () => {
    const code = `import { fileStore } from ${JSON.stringify(await programOf('src/adapters/node/index.ts'))};
      const store = fileStore(${JSON.stringify(path)});
      await store.write('g', (await store.read('g', [])).version, { a: { value: '1', ttlMs: 1e9 } });`;
    await run(process.execPath, ['--input-type=module', '-e', code]);
    expect(readdirSync(folder).sort()).toEqual(['gen.store', 'program.mjs']);
  });

  it('is told that what the one before held is free', async () => {
    const store = fileStore(path);
    const first = leasesOf(store)?.own();
    await put(store, 'g', 'a', '1');
    expect([leasesOf(store)?.own(), leasesOf(fileStore(path))?.own()]).toEqual([first, first]);
    await store.close();
    expect(leasesOf(store)?.own()).not.toBe(first);
  });
});

describe('a path', () => {
  it.each([
    ['a directory', () => mkdirSync(path), 'is a directory'],
    ['something else than a store', () => writeFileSync(path, '{"a":1}\n'), 'is not a store of gen-client'],
    ['a file without a line', () => writeFileSync(path, 'notes'), 'is not a store of gen-client'],
  ])('that is %s is an error that says so, and is left as it is', async (_, make, message) => {
    make();
    for (const call of [fileStore(path).read('g', []), fileStore(path).write('g', '0', { a: set('1') })]) {
      const error = await failure(call);
      expect([error?.message, error?.recovery]).toEqual([expect.stringContaining(message), 'fix_setup']);
    }
    expect(() => readFileStore(path)).toThrow(message);
    expect(existsSync(`${path}.lock`)).toBe(false);
  });

  it('whose directory is missing says to create it, and works once it is there', async () => {
    const deep = fileStore(join(folder, 'data', 'gen.store'));
    expect((await failure(deep.read('g', [])))?.message).toContain('Create its directory first');
    mkdirSync(join(folder, 'data'));
    await put(deep, 'g', 'a', '1');
  });

  it('that is missing is no store to read, and reading writes nothing', async () => {
    expect(() => readFileStore(path)).toThrow('no store of gen-client');
    writeFileSync(path, '');
    await put(fileStore(path), 'g', 'a', '1');
    const reader = readFileStore(path);
    expect(reader.groups).toEqual(['g']);
    expect((await failure(reader.write('g', '0', {})))?.message).toContain('opened for reading only');
  });

  it.each([['', 7, null, 'a\0b', new URL('https://example.com/gen.store')]])('cannot be %j', (given) => {
    expect(() => fileStore(given as string)).toThrow('fileStore(path) takes a path');
  });
});

describe('a disk', () => {
  it('flushes what must last before the write resolves, once for the writes of one moment, and rate limits not at all', async () => {
    const code = `import fs from 'node:fs'; import { promises } from 'node:fs'; import { syncBuiltinESMExports } from 'node:module';
      let flushes = 0; const open = promises.open;
      promises.open = async (...given) => { const file = await open(...given); const sync = file.sync.bind(file);
        file.sync = () => { if (String(given[0]).endsWith('gen.store')) flushes += 1; return sync(); }; return file; };
      syncBuiltinESMExports();
      const { fileStore } = await import(${JSON.stringify(await programOf('src/adapters/node/index.ts'))});
      const store = fileStore(${JSON.stringify(path)}); await store.read('g', []);
      const put = async (group, ttlMs) => store.write(group, (await store.read(group, [])).version, { a: { value: '1', ttlMs } });
      await Promise.all(Array.from({ length: 100 }, (_, at) => put('g' + at, 1e9))); const creates = flushes;
      await Promise.all(Array.from({ length: 100 }, (_, at) => put('lane' + at, 75e3))); 
      console.log(JSON.stringify([creates, flushes - creates]));`;
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', code]);
    expect(JSON.parse(stdout)).toEqual([1, 0]);
  });

  it('works under the permission model of Node (real processes)', async () => {
    const data = join(folder, 'data');
    mkdirSync(data);
    const code = `import { fileStore } from ${JSON.stringify(await programOf('src/adapters/node/index.ts'))};
      const store = fileStore(${JSON.stringify(join(data, 'gen.store'))});
      console.log(await store.write('g', (await store.read('g', [])).version, { a: { value: '1', ttlMs: 1e9 } }));`;
    const flags = ['--permission', `--allow-fs-read=${folder}/*`, `--allow-fs-write=${data}/*`];
    const { stdout } = await run(process.execPath, [...flags, '--input-type=module', '-e', code]);
    expect(stdout).toBe('true\n');
  });
});
