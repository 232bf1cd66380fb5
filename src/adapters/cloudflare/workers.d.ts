// The part of Cloudflare's runtime module that this package uses. Users have Cloudflare's types.
declare module 'cloudflare:workers' {
  /** Base class of every Durable Object. */
  export const DurableObject: abstract new (ctx: never, env: never) => object;
  /** Lets work continue after the response. Missing in older runtimes. */
  export const waitUntil: ((work: Promise<unknown>) => void) | undefined;
}
