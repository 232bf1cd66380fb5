// What the examples use of Bun and Deno. In a project of yours: @types/bun, and Deno's own types.
type Serve = (request: Request) => Response | Promise<Response>;

declare const Bun: { serve(options: { port: string | number; routes: Record<string, Serve> }): void };
declare const Deno: {
  readonly env: { get(name: string): string | undefined };
  serve(options: { port: number }, handler: Serve): void;
};
