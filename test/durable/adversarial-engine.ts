import type { Activities, ActivityName, DurableEngine, GenErrorJson, GeneratedJob, Json } from 'gen-client/durable';

/** Thrown to end a replay like a crash. */
const CRASH = Symbol('crash');

/** The engine's error that prevents retries. */
export class RunFailure extends Error {
  readonly json: GenErrorJson;

  constructor(json: GenErrorJson) {
    super(json.message);
    this.json = json;
  }
}

/** Fault probabilities, from 0 to 1. */
export interface FaultRates {
  readonly chance: () => number;
  /** Probability of a crash before, in, or after a step. */
  readonly crash: number;
  readonly twice: number;
  /** Advances the service by `ms`. Returns true if a webhook ended the wait. */
  readonly wait: (jobId: string | null, ms: number) => Promise<boolean>;
}

interface Remembered {
  readonly step: string;
  readonly input: string;
  readonly result: string;
}

/**
 * An engine that replays a run after each crash, loses unsaved results, runs activities twice, and wakes waits without a
 * reason. It also verifies that step names are unique and that replays pass the same inputs.
 */
export function adversarialEngine(activities: Activities, { chance, crash, twice, wait }: FaultRates) {
  const history: Remembered[] = [];
  const luck = (part: number) => chance() < part;
  const mayCrash = () => {
    if (luck(crash)) throw CRASH;
  };
  let replays = 0;

  async function perform(activity: ActivityName, input: Json): Promise<Json> {
    const run = () => activities[activity](JSON.parse(JSON.stringify(input)));
    if (!luck(twice)) return run();
    // Two concurrent or consecutive workers: the first result counts.
    if (luck(0.5)) return (await Promise.all([run(), run()]))[0];
    const first = await run();
    await run();
    return first;
  }

  function replay(): DurableEngine {
    let at = 0;
    const names = new Set<string>();
    const remembered = async (step: string, input: unknown, act: () => Promise<Json>): Promise<Json> => {
      if (names.has(step)) throw new Error(`two steps are named ${step}`);
      names.add(step);
      const text = JSON.stringify(input);
      const before = history[at];
      at += 1;
      if (before !== undefined) {
        if (before.step !== step || before.input !== text) throw new Error(`${step} was ${before.step} before`);
        return JSON.parse(before.result) as Json;
      }
      mayCrash();
      const result = JSON.stringify(await act());
      if (result === undefined) throw new Error(`${step} did not return JSON`);
      mayCrash();
      history.push({ step, input: text, result });
      mayCrash();
      return JSON.parse(result) as Json;
    };
    return {
      call: (step, activity, input) => remembered(step, { activity, input }, () => perform(activity, input)),
      wait: async (step, jobId, ms) => (await remembered(step, { jobId, ms }, () => wait(jobId, ms))) === true,
      fail: (error) => {
        throw new RunFailure(error);
      },
    };
  }

  return {
    steps: () => history.map(({ step }) => step),
    replays: () => replays,
    /** Runs a workflow to its end, over any number of crashes. */
    async run(workflow: (engine: DurableEngine) => Promise<GeneratedJob>): Promise<GeneratedJob | RunFailure> {
      for (; ; replays++) {
        try {
          return await workflow(replay());
        } catch (error) {
          if (error instanceof RunFailure) return error;
          if (error !== CRASH) throw error;
        }
      }
    },
  };
}
