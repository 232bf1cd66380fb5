// Explains how to call a web handler if it was called with a framework's arguments.
import { GenError } from '../errors/gen-error.js';
import { type Fields, isFields } from '../schemas/envelope.js';

/** Returns an error that says how to call a web handler if `argument` isn't a web Request. */
export function handlerMistake(handler: string, argument: unknown): GenError | undefined {
  if (isRequest(argument)) return undefined;
  return new GenError(`${handler} accepts a web Request. ${fixFor(fieldsOf(argument))}`);
}

/** Returns the fix for a framework's argument. SvelteKit passes `request`, Hono `req`, and API Gateway `requestContext`. */
function fixFor({ request, req, requestContext }: Fields): string {
  if (isRequest(request)) return 'In SvelteKit, Astro, and React Router, export ({ request }) => handler(request).';
  if (isRequest(fieldsOf(req).raw)) return 'In Hono, call handler(c.req.raw).';
  if (requestContext) return 'On AWS Lambda, mount it in a Hono app, and export handle(app) from hono/aws-lambda.';
  return 'In node:http, Express, Nest, Fastify, and the Pages Router of Next.js, use toNodeHandler(handler) from gen-client/node.';
}

function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

function isRequest(value: unknown): boolean {
  return typeof (value as Partial<Request> | null | undefined)?.headers?.get === 'function';
}
