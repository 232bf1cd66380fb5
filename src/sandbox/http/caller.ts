import type { Context } from 'hono';
import { authenticate } from '../service/accounts.js';
import { checkCharacters } from '../service/characters.js';
import type { Caller } from '../service/engine.js';
import { startJob } from '../service/engine.js';
import type { Fields } from '../service/fields.js';
import { readFields } from '../service/fields.js';
import { type MadeKind, madeBefore, remember, slotOf } from '../service/idempotency.js';
import { viewJob } from '../service/job-view.js';
import type { Order } from '../service/order.js';
import { takeSlot } from '../service/rate-limits.js';
import { checkUploads } from '../service/references.js';
import { type Scope, successBody } from '../world/choices.js';
import type { StoredJob } from '../world/store.js';
import type { World } from '../world/world.js';
import { baseUrlOf } from './origins.js';

/** What a route gets beside the request. */
export interface RequestEnv {
  /** A POST's body as text; empty for other methods. */
  readonly body: string;
}

/** The fields of a POST's JSON body; throws `invalid_request` for what is no JSON object. */
export function fieldsIn(context: Context): Fields {
  const { body }: RequestEnv = context.env;
  return readFields(body);
}

/** What an endpoint asks of its caller. */
export interface Door {
  readonly scope?: Scope;
  /** The documented limit it counts against. */
  readonly lane?: string;
}

/** Lets a caller in: key, account, scope, then the account's rate limit. */
export function admit(world: World, context: Context, { scope, lane }: Door): Caller {
  const account = authenticate(world, context.req.header('authorization'), scope);
  if (lane !== undefined) takeSlot(world, account.id, lane);
  return { account, baseUrl: baseUrlOf(context.req.raw, world.settings.baseUrl) };
}

/** The envelope of a success. */
export function succeed(data: Record<string, unknown>, headers: Record<string, string> = {}): Response {
  return Response.json(successBody(data), { headers });
}

/** Makes a thing once for each key: a repeated key gives what the first call made, whatever its body says. */
export function once(
  world: World,
  context: Context,
  { caller, kind, make }: { caller: Caller; kind: MadeKind; make: (fields: Fields) => string },
): { id: string; isReplay: boolean } {
  const fields = fieldsIn(context);
  const slot = slotOf(fields, context.req.header('idempotency-key'), { account: caller.account.id, kind });
  // Nothing here awaits, so copies that come at once cannot pass each other.
  const known = madeBefore(world.state, slot);
  if (known !== undefined) return { id: known, isReplay: true };
  const id = make(fields);
  remember(world.state, slot, id);
  return { id, isReplay: false };
}

/** Takes a create: admits the caller, checks the order, makes the job once, answers the create envelope. */
export function createJob(
  world: World,
  context: Context,
  { door, read }: { door: Door; read: (fields: Fields) => Order },
): Response {
  const caller = admit(world, context, door);
  const { account } = caller;
  const make = (fields: Fields): string => {
    const order = read(fields);
    checkUploads(world, account.id, order.references);
    checkCharacters(
      world,
      account.id,
      fields.texts('character_ids').map(({ value }) => value),
    );
    return startJob(world, caller, order).id;
  };
  const { id, isReplay } = once(world, context, { caller, kind: 'job', make });
  return succeed(created(caller, world.state.jobs.get(id)), isReplay ? { 'idempotency-replayed': 'true' } : {});
}

/** The data of a create's answer (spec: Create response envelope). */
function created({ account, baseUrl }: Caller, job: StoredJob | undefined): Record<string, unknown> {
  if (job === undefined) return {};
  return {
    job: viewJob(job, baseUrl),
    quoted_token_cost: job.quotedTokenCost,
    balance_tokens: account.freeTokens,
    ...(job.warnings.length === 0 ? {} : { warnings: job.warnings }),
  };
}
