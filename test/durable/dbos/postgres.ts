import { execFile, execFileSync, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../../support/free-port.js';
import { warnOrFailInCI } from '../../support/real-tools.js';
import { until } from '../slow-service.js';

const DEBIAN = '/usr/lib/postgresql';

/** Returns the directory of Postgres's programs, or undefined with a printed reason. Throws in CI. */
export function postgresPrograms(): string | undefined {
  const version = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort().at(-1) : undefined;
  if (version !== undefined) return join(DEBIAN, version, 'bin');
  try {
    return execFileSync('pg_config', ['--bindir'], { encoding: 'utf8' }).trim();
  } catch {
    warnOrFailInCI('Postgres is not installed (apt-get install postgresql)');
    return undefined;
  }
}

/** A separate Postgres on a loopback port. */
export interface Postgres {
  readonly url: string;
  close(): Promise<void>;
}

/** Starts Postgres. It rejects root, so root runs it as the user `postgres`. */
export async function startPostgres(programs: string): Promise<Postgres> {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'gen-client-postgres-'));
  const isRoot = process.getuid?.() === 0;
  if (isRoot) {
    chmodSync(folder, 0o755);
    execFileSync('chown', ['postgres', folder]);
  }
  const command = (program: string, args: readonly string[]): [string, string[]] =>
    isRoot
      ? ['runuser', ['-u', 'postgres', '--', join(programs, program), ...args]]
      : [join(programs, program), [...args]];
  const data = join(folder, 'data');
  await promisify(execFile)(...command('initdb', ['-D', data, '-U', 'postgres', '--auth', 'trust', '--no-sync']), {
    cwd: folder,
  });
  const settings = ['-p', String(port), '-h', '127.0.0.1', '-k', folder, '-F'];
  const server = spawn(...command('postgres', ['-D', data, ...settings]), { cwd: folder, stdio: 'ignore' });
  const ready = () => promisify(execFile)(join(programs, 'pg_isready'), ['-h', '127.0.0.1', '-p', String(port)]);
  await until(async () => (await ready()) && true, 30_000);
  return {
    url: `postgresql://postgres@127.0.0.1:${port}/videos`,
    async close() {
      const stop = command('pg_ctl', ['-D', data, 'stop', '-m', 'immediate']);
      await promisify(execFile)(...stop, { cwd: folder }).catch(() => {});
      server.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
