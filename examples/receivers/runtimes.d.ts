// Types of Bun, Deno, and Nest for the examples. In your project, use @types/bun and the types of Deno and Nest.
type Serve = (request: Request) => Response | Promise<Response>;

declare const Bun: { serve(options: { port: string | number; routes: Record<string, Serve> }): void };
declare const Deno: {
  readonly env: { get(name: string): string | undefined };
  serve(options: { port: number }, handler: Serve): void;
};

declare module '@nestjs/common' {
  export function Module(metadata: object): ClassDecorator;
}
declare module '@nestjs/core' {
  interface Application {
    use(path: string, handler: (request: never, response: never) => void): void;
    listen(port: number): Promise<void>;
  }
  export const NestFactory: { create(module: new () => object): Promise<Application> };
}
