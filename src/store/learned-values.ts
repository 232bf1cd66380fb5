// Values that a process learns from the service's responses: prices and job durations.
import { type Durations, durationClassOf, expectedMs, withDuration } from '../rules/polling.js';
import { setAndEvict } from '../runtime/set-and-evict.js';
import type { PricedCall } from '../schemas/budget.js';

/** Maximum values of one kind. The oldest are evicted. */
const MAX_VALUES = 1_000;

/** Values by name, for example prices by price class. */
export class LearnedValues<V> {
  readonly #known = new Map<string, V>();

  get(name: string): V | undefined {
    return this.#known.get(name);
  }

  learn(name: string, value: V): void {
    setAndEvict(this.#known, name, value, MAX_VALUES);
  }

  forget(name: string): void {
    this.#known.delete(name);
  }
}

/** Job durations of an account, by class. All its clients in this process share them. */
export class JobDurations {
  readonly #classes = new LearnedValues<Durations>();
  /** Creates by job ID, until the job has ended. */
  readonly #jobs = new LearnedValues<PricedCall>();

  created(jobId: string, call: PricedCall): void {
    this.#jobs.learn(jobId, call);
  }

  ended(jobId: string): void {
    this.#jobs.forget(jobId);
  }

  classOf(jobId: string): string | undefined {
    const call = this.#jobs.get(jobId);
    return call && durationClassOf(call);
  }

  /** Records that a job of the class completed after `ms` milliseconds. */
  learn(durationClass: string, ms: number): void {
    this.#classes.learn(durationClass, withDuration(this.#classes.get(durationClass) ?? [], ms));
  }

  /** Returns the expected duration of the class in milliseconds, or undefined until a job has completed. */
  expectedMs(durationClass: string): number | undefined {
    const durations = this.#classes.get(durationClass);
    return durations && expectedMs(durations);
  }
}
