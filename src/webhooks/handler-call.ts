// What a framework passes to a web handler by mistake, and the fix.
import { GenError } from '../errors/gen-error.js';
import { type Fields, isFields } from '../schemas/envelope.js';

/** The mistake of a program that calls a web handler with something else; undefined for a web Request. */
export function handlerMistake(handler: string, given: unknown): GenError | undefined {
  if (isRequest(given)) return undefined;
  return new GenError(`${handler} accepts a web Request. ${fixFor(fieldsOf(given))}`);
}

/** `request` is SvelteKit's, `req` Hono's, and `requestContext` that of an API Gateway event. */
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
