import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { setupError } from '../../store/store.js';
import { fileSystemCode } from './flush.js';

/** A process as a lock names it. */
interface Holder {
  readonly pid: number;
  readonly host: string;
  /** When the process began, where the system tells: a pid is given again, the start of a process is not. */
  readonly start: string | undefined;
}

/** How often it is tried again to take a lock that others are taking, too. */
const TRIES = 3;

/** Makes this process the one that uses a file. `<path>.lock` names it. Throws while another process that lives does. */
export function takeLock(path: string): void {
  const lock = lockOf(path);
  const me: Holder = { pid: process.pid, host: hostname(), start: startOf(process.pid) };
  for (let tried = 0; tried < TRIES; tried++) {
    try {
      writeFileSync(lock, `${me.pid}@${me.host} ${me.start ?? ''}\n`, { flag: 'wx', mode: 0o600 });
      return;
    } catch (reason) {
      if (fileSystemCode(reason) !== 'EEXIST') throw reason;
    }
    const holder = readHolder(lock);
    if (holder && isRunning(holder)) {
      const who = holder.pid === me.pid ? 'another thread of this process' : `process ${holder.pid}`;
      throw setupError(
        `fileStore: ${who} is using "${path}". Give each process a file of its own, or share a redisStore. If that process does not use it, delete "${lock}".`,
      );
    }
    rmSync(lock, { force: true });
  }
  throw setupError(`fileStore: other processes are opening "${path}" at the same time. Give each a file of its own.`);
}

/** Lets another process use the file. */
export function releaseLock(path: string): void {
  rmSync(lockOf(path), { force: true });
}

function lockOf(path: string): string {
  return `${path}.lock`;
}

function readHolder(lock: string): Holder | undefined {
  const text = readText(lock);
  const [, pid, host = '', start] = /^(\d+)@(\S*) (\S*)\n$/.exec(text ?? '') ?? [];
  return pid === undefined ? undefined : { pid: Number(pid), host, start: start || undefined };
}

/** Of a process on another machine, or in another container, nothing can be seen: it counts as ended. */
function isRunning({ pid, host, start }: Holder): boolean {
  const now = startOf(pid);
  if (start !== undefined && now !== undefined) return start === now;
  return host === hostname() && pid !== process.pid && isAlive(pid);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (reason) {
    return fileSystemCode(reason) === 'EPERM';
  }
}

/** The field of `/proc/<pid>/stat` with the start of the process, counted from the first after the name of the program. */
const START_FIELD = 19;

/** When a process began, in a form that no other process has; undefined where the system does not tell. */
function startOf(pid: number): string | undefined {
  const stat = readText(`/proc/${pid}/stat`);
  const boot = readText('/proc/sys/kernel/random/boot_id')?.trim();
  // The name is in brackets, and may contain anything.
  const ticks = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[START_FIELD];
  return ticks === undefined || boot === undefined ? undefined : `${boot}/${ticks}`;
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
