import type { Activities, ActivityName, DurableEngine, GenErrorJson, GeneratedJob, Json } from 'gen-client/durable';

/** Thrown to simulate a crash. */
const CRASH = Symbol('crash');

/** The error that `engine.fail` throws. */
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
  /** Probability of a crash before, during, or after a step. */
  readonly crash: number;
  /** Probability that an activity runs twice. */
  readonly twice: number;
  /** Advances the service by `ms`. Returns true if a webhook ended the wait. */
  readonly wait: (jobId: string | null, ms: number) => Promise<boolean>;
}

interface RecordedStep {
  readonly step: string;
  readonly input: string;
  readonly result: string;
}

/**
 * An engine that replays a run after each crash, loses unsaved results, runs activities twice, and ends waits early. Verifies
 * that step names are unique, and that replays pass the same inputs.
 */
export function adversarialEngine(activities: Activities, { chance, crash, twice, wait }: FaultRates) {
  const history: RecordedStep[] = [];
  const occurs = (probability: number) => chance() < probability;
  const mayCrash = () => {
    if (occurs(crash)) throw CRASH;
  };
  let replays = 0;

  async function performActivity(activity: ActivityName, input: Json): Promise<Json> {
    const run = () => activities[activity](JSON.parse(JSON.stringify(input)));
    if (!occurs(twice)) return run();
    // Two workers run it concurrently or in turn. The first result counts.
    if (occurs(0.5)) return (await Promise.all([run(), run()]))[0];
    const first = await run();
    await run();
    return first;
  }

  function replay(): DurableEngine {
    let index = 0;
    const names = new Set<string>();
    const replayOrPerform = async (step: string, input: unknown, perform: () => Promise<Json>): Promise<Json> => {
      if (names.has(step)) throw new Error(`the step name ${step} is not unique`);
      names.add(step);
      const inputJson = JSON.stringify(input);
      const recordedStep = history[index];
      index += 1;
      if (recordedStep !== undefined) {
        if (recordedStep.step !== step || recordedStep.input !== inputJson)
          throw new Error(`${step} was ${recordedStep.step} before`);
        return JSON.parse(recordedStep.result) as Json;
      }
      mayCrash();
      const result = JSON.stringify(await perform());
      if (result === undefined) throw new Error(`${step} did not return JSON`);
      mayCrash();
      history.push({ step, input: inputJson, result });
      mayCrash();
      return JSON.parse(result) as Json;
    };
    return {
      call: (step, activity, input) =>
        replayOrPerform(step, { activity, input }, () => performActivity(activity, input)),
      wait: async (step, jobId, ms) => (await replayOrPerform(step, { jobId, ms }, () => wait(jobId, ms))) === true,
      fail: (error) => {
        throw new RunFailure(error);
      },
    };
  }

  return {
    steps: () => history.map(({ step }) => step),
    replays: () => replays,
    /** Runs a workflow until it ends, despite any number of crashes. */
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
