import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { type Machine, variable } from './machine.js';

/** More keys than these are not remembered. */
const MOST_KEYS = 10_000;

/** An idempotency key, and the service that it was sent to. */
export interface SentKey {
  readonly baseUrl: string;
  readonly key: string;
}

/**
 * Whether a job was made under the key on this machine, so that the file that is there may be its own. Without a state that
 * can be read, no key is known: a file that is there is then refused before anything is paid.
 */
export function isKnownKey(machine: Machine, sent: SentKey): boolean {
  return readKeys(fileIn(machine)).includes(keyHash(sent));
}

/** Remembers that a job was made under the key. Only a hash of it is kept. */
export function rememberKey(machine: Machine, sent: SentKey): void {
  const path = fileIn(machine);
  const known = readKeys(path);
  const hash = keyHash(sent);
  if (known.includes(hash)) return;
  try {
    mkdirSync(folderIn(machine), { recursive: true });
    if (known.length < MOST_KEYS) appendFileSync(path, `${hash}\n`, { mode: 0o600 });
    else writeFileSync(path, `${[...known.slice(-MOST_KEYS / 2), hash].join('\n')}\n`, { mode: 0o600 });
  } catch {
    // The job is paid for, and nothing but a later command without --force depends on this.
  }
}

function readKeys(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').filter(Boolean);
  } catch {
    return [];
  }
}

function fileIn(machine: Machine): string {
  return join(folderIn(machine), 'keys');
}

/** Where programs keep what they remember, by the XDG base directory specification, and its counterpart on Windows. */
function folderIn(machine: Machine): string {
  const state = variable(machine, 'XDG_STATE_HOME', 'LOCALAPPDATA') ?? join(homedir(), '.local', 'state');
  return join(state, 'gen-client');
}

function keyHash({ baseUrl, key }: SentKey): string {
  return createHash('sha256').update(`${baseUrl}\n${key}`).digest('hex').slice(0, 32);
}
