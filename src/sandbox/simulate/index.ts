import * as z from 'zod/mini';
import type { ClientOptions } from '../../client/client-options.js';
import { GenError } from '../../errors/index.js';
import { anObject, checkOptions, must, text } from '../../rules/options.js';
import { systemClock } from '../../runtime/clock.js';
import { isFields } from '../../schemas/envelope.js';
import { isWhole, type SandboxOptions } from '../world/options.js';
import { freshSeed } from '../world/random.js';
import { createChances, type SimulationFaults } from './chance.js';
import { type RunResult, runProcesses, type SimulatedProgram, type Violation } from './run.js';

/** How to simulate a program. */
export interface SimulateOptions {
  /** An integer. The same seed gives the same run. @default a random one, which a failure names */
  readonly seed?: number | undefined;
  /** How many processes run the program, 1 to 50. @default 3 */
  readonly processes?: number | undefined;
  /** How often what goes wrong. @default nothing goes wrong */
  readonly faults?: SimulationFaults | undefined;
  /** Replays the faults that the message of a failure lists, and no others. Give the same seed and faults with it. */
  readonly history?: string | undefined;
  /** Options of the client of every process, in addition to those of the simulation. */
  readonly client?: Omit<ClientOptions, (typeof OWN.client)[number]> | undefined;
  /** Options of the service: durations, prices, limits. @default jobs of 2 to 90 seconds, a balance of 1,000,000 tokens */
  readonly sandbox?: Omit<SandboxOptions, (typeof OWN.sandbox)[number]> | undefined;
  /** Simulated milliseconds in which every program has to end. @default 604_800_000 (7 days) */
  readonly timeoutMs?: number | undefined;
}

/** What a simulation in which everything held has done. */
export interface SimulationReport {
  /** The seed, which repeats the run. */
  readonly seed: number;
  /** How long it took in simulated time, in milliseconds. */
  readonly simulatedMs: number;
  /** Jobs that the service made. */
  readonly jobs: number;
  /** Requests that the processes sent, kills and lost answers among them, outages of the store, and webhooks that the service sent. */
  readonly counts: Readonly<Record<'requests' | 'kills' | 'lostAnswers' | 'outages' | 'webhooks', number>>;
}

const share = must<number>('a share from 0 to 1', (value) => typeof value === 'number' && value >= 0 && value <= 1);
const SCHEMA = z.strictObject({
  seed: must('an integer', Number.isSafeInteger),
  processes: must('a whole number from 1 to 50', (value) => isWhole(value) && value >= 1 && value <= 50),
  faults: z.optional(
    z.strictObject(
      {
        kill: share,
        lostAnswer: share,
        lostWebhook: share,
        lateWebhook: share,
        slow: share,
        clock: share,
        outage: share,
      },
      'an object with shares',
    ),
  ),
  history: text,
  client: anObject,
  sandbox: anObject,
  timeoutMs: must(
    'milliseconds above 0, up to a year',
    (value) => isWhole(value) && value > 0 && value <= 31_536_000_000,
  ),
});

/** Options of the client and of the sandbox that a simulation sets itself. */
const OWN = {
  client: ['apiKey', 'baseUrl', 'fetch', 'store', 'webhookSecret'],
  sandbox: ['clock', 'speed', 'seed', 'apiKey', 'webhookSecret', 'webhookFetch'],
} as const;

/** Runs, and real milliseconds, that the search for a shorter history may take. */
const MOST_RUNS = 200;
const MOST_SEARCH_MS = 10_000;
const WEEK_MS = 604_800_000;
const SHOWN_LINES = 40;

/**
 * Runs a program in many simulated processes against the sandbox, on one clock that follows from a seed, and kills processes,
 * loses answers, webhooks and the store, and moves clocks as `faults` says. A killed program is started again with the same number and a
 * fresh client; so is one whose call failed for a reason that passes (`recovery` `retry`, `retry_later`, `wait_and_retry` or
 * `wait_again`).
 *
 * Rejects with a GenError when something does not hold: each job was reported to some call, charges are the quotes, budgets
 * in the store count what was charged, no 429, every program ends, and nothing is left waiting. Its message contains the seed and a short history that replays the failure.
 * Throws a GenError for a wrong or unknown option.
 *
 * @example
 * await simulate({ seed: 1, faults: { kill: 0.1, lostAnswer: 0.1 } }, async ({ client, process, service }) => {
 *   const idempotencyKey = idempotencyKeyFrom('order', process);
 *   await client.videos.createAndWait({ prompt: 'a fox' }, { idempotencyKey });
 *   await service.check();
 * });
 */
export async function simulate(options: SimulateOptions, program: SimulatedProgram): Promise<SimulationReport> {
  checkOptions('simulate', SCHEMA, options);
  for (const [within, names] of Object.entries(OWN)) refuseOwn(within, names, Reflect.get(options, within));
  if (typeof program !== 'function')
    throw new GenError('simulate needs a program: a function of { client, process, service, random }.');
  const { seed = freshSeed(), processes = 3, faults = {}, timeoutMs = WEEK_MS } = options;
  const simulated = async (only?: ReadonlySet<string>): Promise<RunResult & { readonly struck: readonly string[] }> => {
    const chances = createChances(seed, faults, only);
    const setup = {
      seed,
      chances,
      client: () => options.client ?? {},
      sandbox: options.sandbox ?? {},
      processes,
      timeoutMs,
    };
    return { ...(await runProcesses(setup, program)), struck: chances.struck };
  };
  const { violation, world, struck } = await simulated(
    options.history === undefined ? undefined : listedFaults(options.history),
  );
  if (violation === undefined) {
    const { rateLimited: _, ...counts } = world.counts;
    return { seed, simulatedMs: world.elapsedMs, jobs: world.service.jobs.length, counts };
  }
  const shortest = await shorten(struck, violation, simulated);
  const { world: shown, violation: same } = await simulated(new Set(shortest));
  const isSame = same?.rule === violation.rule;
  throw violationError({
    seed,
    violation: isSame ? same : violation,
    faults: isSame ? shortest : struck,
    history: (isSame ? shown : world).history,
  });
}

/** The fewest of the faults with which the same promise breaks: halves are left out first, then single ones. */
async function shorten(
  struck: readonly string[],
  violation: Violation,
  simulated: (only: ReadonlySet<string>) => Promise<RunResult>,
): Promise<readonly string[]> {
  const untilMs = systemClock.now() + MOST_SEARCH_MS;
  let runs = 0;
  const breaks = async (faults: readonly string[]) => {
    runs += 1;
    return (await simulated(new Set(faults))).violation?.rule === violation.rule;
  };
  let kept = struck;
  for (let size = Math.ceil(kept.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < kept.length; ) {
      if (runs >= MOST_RUNS || systemClock.now() > untilMs) return kept;
      const fewer = [...kept.slice(0, at), ...kept.slice(at + size)];
      if (await breaks(fewer)) kept = fewer;
      else at += size;
    }
  }
  return kept;
}

interface FailedRun {
  readonly seed: number;
  readonly violation: Violation;
  readonly faults: readonly string[];
  readonly history: readonly string[];
}

function violationError({ seed, violation, faults, history }: FailedRun): GenError {
  const left = history.length - SHOWN_LINES;
  const lines = left > 0 ? [`          … ${left} lines before`, ...history.slice(-SHOWN_LINES)] : history;
  const replay = faults.length === 0 ? '' : `, history: '${faults.join(' ')}'`;
  return new GenError(
    [
      `With seed ${seed}, ${violation.text}.`,
      'History:',
      ...lines,
      `Replay it with the same options and { seed: ${seed}${replay} }.`,
    ].join('\n'),
    { recovery: 'none' },
  );
}

function refuseOwn(within: string, names: readonly string[], given: unknown): void {
  const name = names.find((one) => isFields(given) && given[one] !== undefined);
  if (name !== undefined) throw new GenError(`simulate sets ${within}.${name} itself. Leave it out.`);
}

function listedFaults(history: string): ReadonlySet<string> {
  return new Set(history.split(/\s+/).filter(Boolean));
}
