// What a page may have put into the params of a create: tickets of its own uploads, and never an id, a webhook or a key.
import { isUploadField } from '../rules/references.js';
import { isFields } from '../schemas/envelope.js';
import { badTicket, Refused } from './answers.js';
import type { Tickets } from './tickets.js';

/** Fields of a create that only the app may set. */
const APPS_OWN: readonly string[] = ['webhook_url', 'callback_url', 'idempotency_key'];
/** What a page asks for. Refused where it names what only the app may set. */
export function askOf(body: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { ask } = body;
  if (!isFields(ask)) throw new Refused(400, 'invalid_ask', 'Send an object as "ask".');
  const own = APPS_OWN.find((name) => Object.hasOwn(ask, name));
  if (own !== undefined) throw new Refused(400, 'field_not_accepted', `A page cannot set ${own}.`);
  return ask;
}

/**
 * The params to send: what the app's function returned, with the ids of the page's own uploads in place of their tickets.
 * An id, a webhook or a key that came from the page by another way is refused.
 */
export async function askedParams(
  returned: unknown,
  ask: Readonly<Record<string, unknown>>,
  { tickets, user }: { readonly tickets: Tickets; readonly user: string },
): Promise<Record<string, unknown>> {
  if (!isFields(returned)) throw new TypeError('A function of `create` must return the params of the call.');
  const { idempotency_key: _, ...params } = returned;
  const asked = textsIn(ask);
  // A part of what the page has sent, too: the function may have trimmed it.
  const isAsked = (value: string) => value !== '' && asked.some((text) => text.includes(value));
  for (const name of ['webhook_url', 'callback_url']) {
    const url = params[name];
    if (typeof url === 'string' && isAsked(url))
      throw new Refused(400, 'field_not_accepted', `A page cannot set ${name}.`);
  }
  const uploadId = async (value: unknown): Promise<unknown> => {
    if (typeof value !== 'string') {
      if (isPlain(value)) throw new Refused(400, 'upload_invalid', 'An upload field takes tickets of uploads.');
      return value;
    }
    const ticket = await tickets.open(value, { kind: 'upload', user });
    if (ticket) return ticket.id;
    if (isAsked(value)) throw badTicket();
    return value;
  };
  for (const [name, value] of Object.entries(params)) {
    if (!isUploadField(name) || value === undefined || value === null) continue;
    params[name] = Array.isArray(value) ? await Promise.all(value.map(uploadId)) : await uploadId(value);
  }
  return params;
}

/** JSON that is no string: a page cannot send a file in this way, and the app passes files of its own classes. */
function isPlain(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return value !== undefined;
  const prototype: unknown = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === Object.prototype;
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}
