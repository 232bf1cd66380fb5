// The part of Cloudflare's runtime module that this package uses. Users have the types of their own tools.
declare module 'cloudflare:workers' {
  /** The base of every Durable Object class. */
  export const DurableObject: abstract new (ctx: never, env: never) => object;
  /** Lets work go on when its request has been answered. Older runtimes do not have it. */
  export const waitUntil: ((work: Promise<unknown>) => void) | undefined;
}
