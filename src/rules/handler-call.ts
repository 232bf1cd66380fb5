// How a framework may call a web handler by mistake, and what to say then.
import { GenError } from '../errors/gen-error.js';

/** The mistake of a program that calls a web handler with something else; undefined for a web Request. */
export function handlerMistake(handler: string, given: unknown): GenError | undefined {
  if (isRequest(given)) return undefined;
  const isInside = typeof given === 'object' && given !== null && 'request' in given && isRequest(given.request);
  const fix = isInside
    ? 'In SvelteKit, Astro and React Router, export ({ request }) => handler(request).'
    : 'In node:http, Express, Nest or Fastify, use toNodeHandler(handler) from gen-client/node.';
  return new GenError(`${handler} takes a web Request. ${fix}`);
}

function isRequest(value: unknown): boolean {
  return typeof (value as Partial<Request> | null | undefined)?.headers?.get === 'function';
}
