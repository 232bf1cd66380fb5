import { type ChildProcess, execFile, spawn } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { build } from 'esbuild';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { fileStore } from '../../src/adapters/node/index.js';
import { leasesOf } from '../../src/store/port.js';
import type { Store } from '../../src/store/store.js';
import { ROOT } from '../support/build.js';
import { errorOf } from '../support/rejection.js';

const WEEK_MS = 604_800_000;
const run = promisify(execFile);
const set = (value: string, ttlMs = WEEK_MS) => ({ value, ttlMs });

let folder = '';
let path = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gen-store-'));
  path = join(folder, 'gen.store');
});
afterEach(async () => {
  await fileStore(path).close();
  rmSync(folder, { recursive: true, force: true });
});

async function put(store: Store, group: string, key: string, value: string, ttlMs = WEEK_MS) {
  const { version } = await store.read(group, []);
  expect(await store.write(group, version, { [key]: set(value, ttlMs) })).toBe(true);
}

async function valueIn(store: Store, group: string, key: string) {
  return (await store.read(group, [key])).values[key];
}

const failureOf = async (call: Promise<unknown>) => (await errorOf(call)) as Error & { recovery?: string };

/** Bundles a test program. Returns its path. */
async function programOf(source: string): Promise<string> {
  const outfile = join(folder, 'program.mjs');
  const entryPoints = [join(ROOT, source)];
  await build({ entryPoints, outfile, bundle: true, platform: 'node', format: 'esm', logLevel: 'error' });
  return outfile;
}

/** Returns a function that runs a script with `fileStore` and `store` in its own process. */
async function scriptRunner(storePath = path, flags: readonly string[] = []) {
  const program = JSON.stringify(await programOf('src/adapters/node/index.ts'));
  const setup = `const { fileStore } = await import(${program}); const store = fileStore(${JSON.stringify(storePath)});`;
  return (script: string, prelude = '') =>
    run(process.execPath, [...flags, '--input-type=module', '-e', `${prelude}${setup}${script}`]);
}

const exitOf = (child: ChildProcess) => new Promise((resolve) => child.once('exit', resolve));

/** Starts the counting program, and resolves after its first count. */
async function startCounting(program: string): Promise<{ child: ChildProcess; acknowledged: () => number[] }> {
  const child = spawn(process.execPath, [program, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout?.on('data', (chunk) => {
    output += chunk;
  });
  await expect.poll(() => output).toContain('\n');
  return { child, acknowledged: () => output.split('\n').slice(0, -1).map(Number) };
}

/** Returns the lease files next to the store. */
const leaseFiles = () => readdirSync(folder).filter((name) => name.startsWith('gen.store-lease-'));

describe('a written value', () => {
  it('persists with its TTL and version when the file is reopened', async () => {
    const store = fileStore(path);
    await put(store, 'g', 'a', '1');
    await put(store, 'g', 'b', 'ü🦊\n"');
    await put(store, 'g', 'short', 'gone', 5);
    const { version } = await store.read('g', []);
    await store.close();
    await expect.poll(() => valueIn(store, 'g', 'short')).toBeUndefined();
    const stored = await fileStore(path).read('g', ['a', 'b', 'short']);
    expect({ ...stored.values }).toEqual({ a: '1', b: 'ü🦊\n"' });
    expect(stored.version).toBe(version);
  });

  it('is acknowledged even if the store closes meanwhile', async () => {
    const store = fileStore(path);
    const writes = ['a', 'b', 'c'].map((group) => put(store, group, 'k', group));
    await new Promise((resolve) => setImmediate(resolve));
    await store.close();
    await Promise.all(writes);
    expect(await Promise.all(['a', 'b', 'c'].map((group) => valueIn(store, group, 'k')))).toEqual(['a', 'b', 'c']);
  });

  it('gets a version that its deleted group never had', async () => {
    const store = fileStore(path);
    await put(store, 'g', 'a', '1');
    const oldVersion = (await store.read('g', [])).version;
    await store.write('g', oldVersion, { a: null });
    await store.close();
    for (let at = 0; at < 5; at++) {
      await put(store, 'g', 'b', String(at));
      expect((await store.read('g', [])).version).not.toBe(oldVersion);
    }
  });

  it('is readable only by the owner, even if others could read the file before', async () => {
    await put(fileStore(path), 'g', 'a', '1');
    expect(leasesOf(fileStore(path))?.own()).toBeDefined();
    for (const name of readdirSync(folder))
      expect([name, statSync(join(folder, name)).mode & 0o077]).toEqual([name, 0]);
    await fileStore(path).close();
    chmodSync(path, 0o644);
    await put(fileStore(path), 'g', 'a', '2');
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('is in the same store for every path of its file', async () => {
    const store = fileStore(path);
    await put(store, 'g', 'a', '1');
    const link = join(folder, 'link');
    symlinkSync(path, link);
    expect(fileStore(pathToFileURL(link))).toBe(store);
    expect(fileStore(path)).toBe(store);
  });

  it("is written through a symbolic link to a file that doesn't exist yet", async () => {
    mkdirSync(join(folder, 'shared'));
    symlinkSync(join('shared', 'gen.store'), path);
    await put(fileStore(path), 'g', 'a', '1');
    expect(readdirSync(join(folder, 'shared'))).toContain('gen.store');
    expect(statSync(join(folder, 'shared', 'gen.store')).size).toBeGreaterThan(0);
  });

  it("is removed after it expires, so the file doesn't grow", async () => {
    const store = fileStore(path);
    await put(store, 'retained', 'k', 'v');
    const text = 'x'.repeat(1_000);
    const now = vi.spyOn(Date, 'now');
    const startMs = 1.8e12;
    for (let at = 0; at < 500; at++) {
      now.mockReturnValue(startMs + at * 10_000);
      await put(store, `event ${at}`, 'n', text, 60_000);
    }
    now.mockRestore();
    await store.close();
    expect(statSync(path).size).toBeLessThan(300_000);
    const database = new DatabaseSync(path);
    expect(database.prepare('select count(*) n from groups').get()).toEqual({
      n: expect.toSatisfy((n: number) => n < 30),
    });
    database.close();
  });
});

describe('several processes', () => {
  it('increment one counter, and acknowledged writes survive SIGKILL (real processes)', async () => {
    const program = await programOf('test/store/store-process.ts');
    const all: Awaited<ReturnType<typeof startCounting>>[] = [];
    for (let round = 0; round < 3; round++) {
      const pair = await Promise.all([startCounting(program), startCounting(program)]);
      all.push(...pair);
      await put(fileStore(path), 'beside', `${round}`, 'of this process');
      for (const { child, acknowledged } of pair) {
        await expect.poll(() => acknowledged().length).toBeGreaterThan(20);
        child.kill('SIGKILL');
        await exitOf(child);
      }
    }
    const numbers = all.flatMap(({ acknowledged }) => acknowledged());
    expect(new Set(numbers).size).toBe(numbers.length);
    const counted = Number(await valueIn(fileStore(path), 'g', 'n'));
    expect(counted).toBeGreaterThanOrEqual(Math.max(...numbers));
    // Each process has at most one unacknowledged write, its last.
    expect(counted - numbers.length).toBeLessThanOrEqual(all.length);
    expect(await valueIn(fileStore(path), 'g', 'text')).toMatch(new RegExp(`^x{2000}${counted}$`));
  }, 120_000);

  it('create one store if they start at the same time (real processes)', async () => {
    const runScript = await scriptRunner();
    const count = `
      for (;;) {
        const { version, values } = await store.read('g', ['n']);
        if (await store.write('g', version, { n: { value: String(Number(values.n ?? 0) + 1), ttlMs: 1e9 } })) break;
      }`;
    await Promise.all(Array.from({ length: 6 }, () => runScript(count)));
    expect(await valueIn(fileStore(path), 'g', 'n')).toBe('6');
    expect(readdirSync(folder).filter((name) => name.includes('-new-'))).toEqual([]);
  });

  it('wait for each other without blocking their event loops', async () => {
    const store = fileStore(path);
    await put(store, 'g', 'a', '1');
    const other = new DatabaseSync(path);
    other.exec('begin immediate');
    let turns = 0;
    const timer = setInterval(() => turns++, 5);
    const written = put(store, 'g', 'a', '2');
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await valueIn(store, 'g', 'a')).toBe('1');
    other.exec('commit');
    other.close();
    await written;
    clearInterval(timer);
    expect(turns).toBeGreaterThan(20);
    expect(await valueIn(store, 'g', 'a')).toBe('2');
  });

  it('report a store that stays busy as unavailable', async () => {
    const store = fileStore(path);
    await put(store, 'g', 'a', '1');
    const other = new DatabaseSync(path);
    other.exec('begin immediate');
    let nowMs = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => (nowMs += 3_000));
    const error = await failureOf(store.write('g', (await store.read('g', [])).version, { a: set('2') }));
    vi.restoreAllMocks();
    expect(error.name).toBe('ConnectionError');
    expect(error.message).toContain('database is locked');
    other.close();
    await put(store, 'g', 'a', '3');
  });
});

it('a process leaves only the store file when it exits (real processes)', async () => {
  const runScript = await scriptRunner();
  await runScript(`
    await store.write('g', (await store.read('g', [])).version, { a: { value: '1', ttlMs: 1e9 } });
    store[Symbol.for('gen-client.leases')].own();`);
  expect(readdirSync(folder).sort()).toEqual(['gen.store', 'program.mjs']);
});

describe('a worker thread', () => {
  it('shares the file with its process, and can reopen it after another thread was terminated', async () => {
    await put(fileStore(path), 'g', 'a', '1');
    const program = await programOf('test/store/store-process.ts');
    for (let thread = 0; thread < 3; thread++) {
      const worker = new Worker(program, { argv: [path], stdout: true });
      await new Promise((resolve, reject) => {
        worker.stdout.once('data', resolve);
        worker.once('error', reject);
      });
      await put(fileStore(path), 'beside', 'a', String(thread));
      await worker.terminate();
    }
    expect(Number(await valueIn(fileStore(path), 'g', 'n'))).toBeGreaterThan(2);
  });
});

describe('a lease', () => {
  const leases = () => leasesOf(fileStore(path)) ?? expect.unreachable();

  it("isn't acquired by reads and writes", async () => {
    await put(fileStore(path), 'g', 'a', '1');
    await fileStore(path).read('g', ['a']);
    expect(leaseFiles()).toEqual([]);
  });

  it('belongs to the process, and ends when the store is closed', async () => {
    const name = leases().own();
    expect([leases().own(), leases().isHeld(name), leases().isHeld('another')]).toEqual([name, true, false]);
    expect(leaseFiles()).toHaveLength(1);
    await fileStore(path).close();
    expect([leases().isHeld(name), leaseFiles()]).toEqual([false, []]);
    expect(leases().own()).not.toBe(name);
  });

  it('ends when its process is killed, and the next process removes its file (real processes)', async () => {
    const program = await programOf('test/store/lease-process.ts');
    const child = spawn(process.execPath, [program, path], { stdio: ['ignore', 'pipe', 'inherit'] });
    const name = await new Promise<string>((resolve) =>
      child.stdout.once('data', (text) => resolve(String(text).trim())),
    );
    expect(leases().isHeld(name)).toBe(true);
    leases().own();
    expect(leaseFiles()).toHaveLength(2);
    child.kill('SIGKILL');
    await exitOf(child);
    expect(leases().isHeld(name)).toBe(false);
    await fileStore(path).close();
    leases().own();
    expect(leaseFiles()).toHaveLength(1);
  });

  it('removes incomplete stores more than an hour old when it is acquired', async () => {
    for (const [name, hours] of [
      ['gen.store-new-1', 2],
      ['gen.store-new-2', 0],
    ] as const) {
      writeFileSync(join(folder, name), '');
      utimesSync(join(folder, name), new Date(), new Date(Date.now() - hours * 3_600_000));
    }
    leases().own();
    expect(readdirSync(folder).filter((name) => name.includes('-new-'))).toEqual(['gen.store-new-2']);
  });

  it('is acquired under another name if its file was removed before it was locked', async () => {
    const { exec } = DatabaseSync.prototype;
    const execSpy = vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(function (this: DatabaseSync, sql) {
      if (sql.includes('exclusive') && execSpy.mock.calls.filter(([text]) => text.includes('exclusive')).length === 1)
        for (const name of leaseFiles()) rmSync(join(folder, name));
      return exec.call(this, sql);
    });
    const name = leases().own();
    vi.restoreAllMocks();
    expect(leaseFiles()).toEqual([`gen.store-lease-${name}`]);
  });
});

describe('a damaged file', () => {
  const FIVE_KB = 5_000;
  const PAGE = 4_096;
  it.each<[string, (bytes: Buffer) => Buffer, string]>([
    ['truncated to nothing', () => Buffer.alloc(0), 'is empty'],
    ['filled with zeros', (bytes) => Buffer.alloc(bytes.length), 'is not a gen-client store'],
    ['truncated in the middle', (bytes) => bytes.subarray(0, FIVE_KB), 'is damaged'],
    ['with a page of zeros', (bytes) => bytes.fill(0, PAGE, 2 * PAGE), 'is damaged'],
    ['with a page of noise', (bytes) => bytes.fill(0x5a, 2 * PAGE, 3 * PAGE), 'is damaged'],
    ['replaced by JSON', () => Buffer.from('{"jobs":[]}\n'), 'is not a gen-client store'],
    ['replaced by a short text', () => Buffer.from('notes'), 'is not a gen-client store'],
  ])('%s causes an error that identifies the file, and stays unchanged', async (_, damage, message) => {
    const store = fileStore(path);
    for (let at = 0; at < 40; at++) await put(store, 'g', `k${at}`, 'v'.repeat(200));
    await store.close();
    const damaged = damage(readFileSync(path));
    writeFileSync(path, damaged);
    for (const call of [() => store.read('g', ['k1']), () => store.write('g', '0', { k1: set('1') })]) {
      const error = await failureOf(call());
      expect(error).toMatchObject({ message: expect.stringContaining(message), recovery: 'fix_setup' });
      expect(error.message).toContain(path);
    }
    expect(readFileSync(path).equals(damaged)).toBe(true);
  });
});

it.each([
  ['a later format', 'pragma application_id = 1734700643; pragma user_version = 2', 'later version of gen-client'],
  ['another program', 'create table notes (text)', 'is not a gen-client store'],
])('a database of %s causes an error, and stays unchanged', async (_, sql, message) => {
  const database = new DatabaseSync(path);
  database.exec(`${sql}; create table t (a); insert into t values (1)`);
  database.close();
  const contentBefore = readFileSync(path);
  expect((await failureOf(fileStore(path).read('g', [])))?.message).toContain(message);
  expect(readFileSync(path).equals(contentBefore)).toBe(true);
});

it('a store file that is deleted or replaced is detected on the next call', async () => {
  const store = fileStore(path);
  await put(store, 'g', 'a', '1');
  renameSync(path, join(folder, 'backup'));
  expect((await failureOf(store.read('g', [])))?.message).toContain('was deleted or replaced');
  const database = new DatabaseSync(path);
  database.exec('create table t (a)');
  database.close();
  expect((await failureOf(store.write('g', '0', { a: set('2') })))?.message).toContain('was deleted or replaced');
});

describe('a path', () => {
  it('of a directory causes an error', async () => {
    mkdirSync(path);
    const error = await failureOf(fileStore(path).read('g', []));
    expect(error).toMatchObject({ message: expect.stringContaining('is a directory'), recovery: 'fix_setup' });
  });

  it('in a missing directory causes an error that says how to fix it, and works once it exists', async () => {
    const deep = fileStore(join(folder, 'data', 'gen.store'));
    for (const call of [() => deep.read('g', []), async () => leasesOf(deep)?.own()]) {
      const error = await failureOf(call());
      expect(error).toMatchObject({ message: expect.stringContaining('Create its directory'), recovery: 'fix_setup' });
    }
    mkdirSync(join(folder, 'data'));
    await put(deep, 'g', 'a', '1');
    await deep.close();
  });

  it.each(['', 7, null, 'a\0b', new URL('https://example.com/gen.store')])('cannot be %j', (invalid) => {
    expect(() => fileStore(invalid as string)).toThrow(
      'fileStore: path must be the path of a file or a file: URL, not ',
    );
  });

  it('cannot be :memory:', () => {
    expect(() => fileStore(':memory:')).toThrow('Use memoryStore()');
  });
});

describe('a disk', () => {
  it('is flushed at most twice for 100 concurrent writes, and never for rate limits', async () => {
    const countFlushes = `import { promises } from 'node:fs'; import { syncBuiltinESMExports } from 'node:module';
      let flushes = 0; const open = promises.open;
      promises.open = async (...args) => { const file = await open(...args); const sync = file.sync.bind(file);
        file.sync = () => { if (String(args[0]).endsWith('gen.store-wal')) flushes += 1; return sync(); }; return file; };
      syncBuiltinESMExports();`;
    const runScript = await scriptRunner();
    const script = ` await store.read('g', []);
      const put = async (group, ttlMs) => store.write(group, (await store.read(group, [])).version, { a: { value: '1', ttlMs } });
      await Promise.all(Array.from({ length: 100 }, (_, at) => put('g' + at, 1e9))); const creates = flushes;
      await Promise.all(Array.from({ length: 100 }, (_, at) => put('limit' + at, 75e3))); const limits = flushes - creates;
      await store.write('g1', (await store.read('g1', [])).version, { a: null });
      console.log(JSON.stringify([creates, limits, flushes - creates - limits]));`;
    const { stdout } = await runScript(script, countFlushes);
    const [creates, limits, deletions] = JSON.parse(stdout);
    expect(creates).toBeGreaterThan(0);
    expect([creates <= 2, limits, deletions]).toEqual([true, 0, 1]);
  });

  it.skipIf(process.platform !== 'linux' || process.getuid?.() !== 0)(
    'that is read-only can be read, and the error for a write says what to allow',
    async () => {
      const [disk, mounted] = [join(folder, 'disk'), join(folder, 'mounted')];
      for (const directory of [disk, mounted]) mkdirSync(directory);
      const written = fileStore(join(disk, 'gen.store'));
      await put(written, 'g', 'a', '1');
      await written.close();
      await run('sh', ['-c', `mount --bind ${disk} ${mounted} && mount -o remount,ro,bind ${mounted}`]);
      const store = fileStore(join(mounted, 'gen.store'));
      try {
        expect(await valueIn(store, 'g', 'a')).toBe('1');
        const error = await failureOf(put(store, 'g', 'a', '2'));
        expect(error).toMatchObject({ message: expect.stringContaining('Allow this process'), recovery: 'fix_setup' });
      } finally {
        await store.close();
        await run('umount', [mounted]);
      }
    },
  );
});

it("a file store works under Node's permission model (real processes)", async () => {
  const data = join(folder, 'data');
  mkdirSync(data);
  const flags = ['--permission', `--allow-fs-read=${folder}/*`, `--allow-fs-write=${data}/*`];
  const runScript = await scriptRunner(join(data, 'gen.store'), flags);
  const { stdout } = await runScript(`
    store[Symbol.for('gen-client.leases')].own();
    console.log(await store.write('g', (await store.read('g', [])).version, { a: { value: '1', ttlMs: 1e9 } }));`);
  expect(stdout).toBe('true\n');
  expect(readdirSync(data)).toEqual(['gen.store']);
});
