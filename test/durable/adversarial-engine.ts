import type { Activities, ActivityName, DurableEngine, GenErrorJson, GeneratedJob, Json } from 'gen-client/durable';

/** Ends a replay, as the death of a process does. */
const CRASH = Symbol('crash');

/** The engine's "do not repeat". */
export class RunFailure extends Error {
  readonly json: GenErrorJson;

  constructor(json: GenErrorJson) {
    super(json.message);
    this.json = json;
  }
}

/** Probabilities of an adversarial engine, from 0 to 1. */
export interface Malice {
  readonly chance: () => number;
  /** Crashes before, in, and after a step, and activities that run twice. */
  readonly crash: number;
  readonly twice: number;
  /** Lets `ms` pass at the service. Returns true or false if a webhook (first or repeated) ends the wait. */
  readonly wait: (jobId: string | null, ms: number) => Promise<boolean>;
}

interface Remembered {
  readonly step: string;
  readonly input: string;
  readonly result: string;
}

/**
 * An engine that replays a run from its beginning whenever it dies, forgets results that it had not yet remembered, does
 * activities twice, and wakes waits for nothing. It holds the run to what the port promises about names and inputs.
 */
export function adversarialEngine(activities: Activities, { chance, crash, twice, wait }: Malice) {
  const history: Remembered[] = [];
  const luck = (part: number) => chance() < part;
  const mayCrash = () => {
    if (luck(crash)) throw CRASH;
  };
  let replays = 0;

  async function perform(activity: ActivityName, input: Json): Promise<Json> {
    const run = () => activities[activity](JSON.parse(JSON.stringify(input)));
    if (!luck(twice)) return run();
    // Two workers at once, or one after the other: the first result is the one that counts.
    if (luck(0.5)) return (await Promise.all([run(), run()]))[0];
    const first = await run();
    await run();
    return first;
  }

  function replay(): DurableEngine {
    let at = 0;
    const names = new Set<string>();
    const remembered = async (step: string, input: unknown, act: () => Promise<Json>): Promise<Json> => {
      if (names.has(step)) throw new Error(`${step} is the name of two steps`);
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
      if (result === undefined) throw new Error(`${step} gave no JSON`);
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
    /** Runs to the end, over any number of crashes. */
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
