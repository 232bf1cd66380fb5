import { expectedMs, type Lengths, withLength } from '../rules/lengths.js';
import { keepLast } from '../runtime/keep-last.js';
import type { ClientAccount } from './account.js';
import { Facts } from './facts.js';

/** Jobs whose class is remembered from their create until somebody waits for them. */
const REMEMBERED_JOBS = 1_000;

/** How long the jobs of an account take, by class. All its clients in this process share it. */
export class JobLengths {
  readonly #classes: Facts<Lengths>;
  readonly #jobs = new Map<string, string>();

  constructor(classes: Facts<Lengths> = new Facts()) {
    this.#classes = classes;
  }

  /** A job of a class was created. */
  created(jobId: string, lengthClass: string): void {
    keepLast(this.#jobs, jobId, lengthClass, REMEMBERED_JOBS);
  }

  /** The class of a job that was created in this process. */
  classOf(jobId: string): string | undefined {
    return this.#jobs.get(jobId);
  }

  /** A job of a class has completed after `ms` milliseconds. */
  learn(lengthClass: string, ms: number): void {
    this.#classes.learn(lengthClass, (lengths) => withLength(lengths ?? [], ms));
  }

  /** How long a job of a class will take, in milliseconds; undefined while none has completed. */
  expectedMs(lengthClass: string): number | undefined {
    const lengths = this.#classes.get(lengthClass);
    return lengths && expectedMs(lengths);
  }
}

/** The lengths that all clients of an account share. */
export function lengthsOf(account: Pick<ClientAccount, 'shared'> & Partial<Pick<ClientAccount, 'facts'>>): JobLengths {
  return account.shared('lengths', () => new JobLengths(account.facts?.lengths));
}
