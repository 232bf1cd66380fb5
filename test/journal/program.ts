import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { saveOutput } from '../../src/adapters/node/index.js';
import type { GenClient, Journal } from '../../src/index.js';
import { isCompleted } from '../../src/index.js';
import { foldJournal, type JournalEntry } from '../../src/rules/journal.js';

/** What a program is to do, whenever it is started. */
export interface Program {
  readonly client: GenClient;
  readonly journal: Pick<Journal, 'append'> & { entries(): Promise<Iterable<JournalEntry>> };
  readonly folder: string;
  /** How many jobs it is to make in all. */
  readonly calls: number;
  /** Calls at once. */
  readonly concurrency: number;
}

/**
 * A program that makes one job per call under keys that the client chooses, and saves its file. Started again, it takes
 * up what it left, and begins the calls that its journal does not name.
 */
export async function runProgram({ client, journal, folder, calls, concurrency }: Program): Promise<void> {
  const out = join(folder, 'out');
  mkdirSync(out, { recursive: true });
  const wait = { pollIntervalMs: 50 };
  for await (const job of client.resume(undefined, wait)) {
    if (isCompleted(job)) await saveOutput(client, job, `${out}/`, { overwrite: true });
  }
  const begun = new Set(foldJournal(await journal.entries()).map(({ label }) => label));
  const left = Array.from({ length: calls }, (_, at) => `call-${at}`).filter((label) => !begun.has(label));
  const queue = left.values();
  const worker = async () => {
    for (const label of queue) {
      const job = await client.images.createAndWait({ prompt: `a fox, ${label}` }, { ...wait, label });
      await saveOutput(client, job, `${out}/`, { overwrite: true });
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}
