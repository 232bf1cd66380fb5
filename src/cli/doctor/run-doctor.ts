import type { APIError } from '../../errors/index.js';
import { isRateLimited } from '../../rules/fate.js';
import {
  type Check,
  checkCatalog,
  checkClock,
  checkScopes,
  checkService,
  dispatchCheck,
  keyCheck,
  limitsCheck,
  NO_ID,
  permissionsOf,
} from './checks.js';
import { createDoctorObserver, type Observe, type ObserverOptions, type Seen } from './observer.js';
import { type OpenPoint, openPointsIn, recordsIn } from './open-points.js';
import { openPointsOfUpload } from './upload-check.js';
import { checkWebhook, type Receiver } from './webhook-check.js';

/** What the doctor found. */
export interface Diagnosis {
  /** Whether nothing failed. */
  readonly ok: boolean;
  readonly checks: readonly Check[];
  readonly openPoints: readonly OpenPoint[];
}

/** What to look at. */
export interface DoctorPlan extends ObserverOptions {
  /** The receiver of webhooks to try, if any. */
  readonly receiver?: Receiver | undefined;
}

/** Looks at everything that costs no token: reads, requests that can only be refused, and an upload that is deleted. */
export async function runDoctor(plan: DoctorPlan): Promise<Diagnosis> {
  const limited: APIError[] = [];
  const once = createDoctorObserver(plan);
  const observe: Observe = async (call) => {
    const seen = await once(call);
    if (isRateLimited(seen.error)) limited.push(seen.error);
    return seen;
  };
  const models = await observe((client, options) => client.models.list(options));
  const checks: Check[] = [checkService(models)];
  let openPoints: OpenPoint[] = [];
  if (checks[0]?.status === 'ok') {
    checks.push(checkClock(models), checkCatalog(models));
    const unknownJob = await observe((client, options) => client.jobs.get(NO_ID, options));
    const key = keyCheck(unknownJob, plan.apiKey !== undefined);
    checks.push(key);
    if (key.status === 'ok') {
      const seen = await look(observe);
      const permissions = await permissionsOf(observe, {
        'GET /v1/jobs/{id}': unknownJob,
        'GET /v1/characters': seen.characters,
        'POST /v1/characters': seen.unnamedCharacter,
        'GET /v1/voices': seen.voices,
      });
      const { fetch: ask = fetch, signal } = plan;
      openPoints = [
        ...openPointsIn({ models, unknownJob, ...seen }),
        ...(await openPointsOfUpload(observe, { fetch: ask, signal })),
      ];
      checks.push(checkScopes(permissions), dispatchCheck(permissions), limitsCheck(limited));
    }
  }
  const { receiver } = plan;
  const untried = 'Pass --webhook https://… to try your receiver with a signed event.';
  checks.push(receiver ? await checkWebhook(receiver) : { name: 'webhook', status: 'skipped', message: untried });
  return { ok: checks.every(({ status }) => status !== 'failed'), checks, openPoints };
}

/** The reads that open points are seen in. */
async function look(observe: Observe) {
  const voices = await observe((client, options) => client.voices.list(options));
  const characters = await observe((client, options) => client.characters.list(options));
  const id = recordsIn(characters.body, 'characters').map((record) => record.character_id ?? record.id)[0];
  const character: Seen | undefined =
    typeof id === 'string' ? await observe((client, options) => client.characters.get(id, options)) : undefined;
  const body = { mode: 'register' };
  const unnamedCharacter = await observe((client, options) =>
    client.request({ method: 'POST', path: '/v1/characters', body }, options),
  );
  const integration = await observe((client, options) => client.models.integrationData(options));
  return { voices, characters, character, unnamedCharacter, integration };
}
