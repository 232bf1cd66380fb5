import {
  type Check,
  checkCatalog,
  checkClock,
  checkDispatch,
  checkKey,
  checkScopes,
  checkService,
  NO_ID,
  permissionsOf,
} from './checks.js';
import { createObserver, type Observe, type ObserverOptions, type Seen } from './observer.js';
import { type OpenPoint, openPointsIn, recordsIn } from './open-points.js';
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

/** Looks at everything that can be seen for free: reads, and requests that can only be refused. */
export async function runDoctor(plan: DoctorPlan): Promise<Diagnosis> {
  const observe = createObserver(plan);
  const models = await observe((client) => client.models.list());
  const checks: Check[] = [checkService(models)];
  let openPoints: OpenPoint[] = [];
  if (checks[0]?.status === 'ok') {
    checks.push(checkClock(models), checkCatalog(models));
    const unknownJob = await observe((client) => client.jobs.get(NO_ID));
    const key = checkKey(unknownJob, plan.apiKey !== undefined);
    checks.push(key);
    if (key.status === 'ok') {
      const seen = await look(observe);
      const permissions = await permissionsOf(observe, {
        'GET /v1/jobs/{id}': unknownJob,
        'GET /v1/characters': seen.characters,
        'POST /v1/characters': seen.unnamedCharacter,
        'GET /v1/voices': seen.voices,
      });
      checks.push(checkScopes(permissions), checkDispatch(permissions));
      openPoints = openPointsIn({ models, unknownJob, ...seen });
    }
  }
  const { receiver } = plan;
  const untried = 'Pass --webhook https://… to try your receiver with a signed event.';
  checks.push(receiver ? await checkWebhook(receiver) : { name: 'webhook', status: 'skipped', message: untried });
  return { ok: checks.every(({ status }) => status !== 'failed'), checks, openPoints };
}

/** The reads that open points are seen in. */
async function look(observe: Observe) {
  const voices = await observe((client) => client.voices.list());
  const characters = await observe((client) => client.characters.list());
  const id = recordsIn(characters.body, 'characters').map((record) => record.character_id ?? record.id)[0];
  const character: Seen | undefined =
    typeof id === 'string' ? await observe((client) => client.characters.get(id)) : undefined;
  const body = { mode: 'register' };
  const unnamedCharacter = await observe((client) => client.request({ method: 'POST', path: '/v1/characters', body }));
  const integration = await observe((client) => client.models.integrationData());
  return { voices, characters, character, unnamedCharacter, integration };
}
