import type { Job } from '../schemas/job.js';
import { type LifeTable, learn, newLifeTable, outlook, rhythmOf, type Stretch } from './poll-schedule.js';

/** Kinds of jobs that are remembered. */
const REMEMBERED = 256;

/** What has been learned of the account's jobs, by model. */
export class Forecast {
  readonly #tables = new Map<string, LifeTable>();

  /** What awaits the job after it was `ageMs` old. */
  outlook(job: Job | undefined, ageMs: number): Iterable<Stretch> {
    return outlook(this.#table(job), rhythmOf(job), ageMs);
  }

  /** A read has shown that the job lived from one age to another, and whether it ended there. */
  saw(job: Job, life: { readonly fromMs: number; readonly toMs: number; readonly ended: boolean }): void {
    learn(this.#table(job), life);
  }

  #table(job: Job | undefined): LifeTable {
    const name = `${job?.modelId}/${job?.mediaType}`;
    const table = this.#tables.get(name) ?? newLifeTable();
    if (this.#tables.size >= REMEMBERED) this.#tables.clear();
    this.#tables.set(name, table);
    return table;
  }
}
