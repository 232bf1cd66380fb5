// A JSON body that a framework has already parsed, for handlers that don't need the raw bytes.

const PARSED: unique symbol = Symbol.for('gen-client.parsed-body');

export function withParsedBody(request: Request, value: unknown): Request {
  return Object.assign(request, { [PARSED]: value });
}

/** Returns the parsed body, or undefined if the raw bytes are available. */
export function parsedBodyOf(request: Request & { readonly [PARSED]?: unknown }): unknown {
  return request[PARSED];
}
