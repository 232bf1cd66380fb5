// A JSON body that a framework parsed before the handler was called. Only a handler that needs no raw bytes reads it.

const PARSED: unique symbol = Symbol.for('gen-client.parsed-body');

export function withParsedBody(request: Request, value: unknown): Request {
  return Object.assign(request, { [PARSED]: value });
}

/** The parsed body; undefined if the raw bytes are still there. */
export function parsedBodyOf(request: Request & { readonly [PARSED]?: unknown }): unknown {
  return request[PARSED];
}
