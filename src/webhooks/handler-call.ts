// What a framework passes to a web handler by mistake, and the fix.
import { GenError } from '../errors/gen-error.js';

/** The mistake of a program that calls a web handler with something else; undefined for a web Request. */
export function handlerMistake(handler: string, given: unknown): GenError | undefined {
  if (isRequest(given)) return undefined;
  return new GenError(`${handler} accepts a web Request. ${fixFor(Object(given))}`);
}

/** `request` is SvelteKit's, `req` Hono's, and `requestContext` that of an API Gateway event. */
function fixFor(given: {
  readonly request?: unknown;
  readonly req?: { readonly raw?: unknown };
  readonly requestContext?: unknown;
}) {
  if (isRequest(given.request))
    return 'In SvelteKit, Astro, and React Router, export ({ request }) => handler(request).';
  if (isRequest(given.req?.raw)) return 'In Hono, call handler(c.req.raw).';
  if (given.requestContext)
    return 'On AWS Lambda, mount it in a Hono app, and export handle(app) from hono/aws-lambda.';
  return 'In node:http, Express, Nest, Fastify, and the Pages Router of Next.js, use toNodeHandler(handler) from gen-client/node.';
}

function isRequest(value: unknown): boolean {
  return typeof (value as Partial<Request> | null | undefined)?.headers?.get === 'function';
}
