import * as z from 'zod/mini';
import { GenError } from '../errors/index.js';
import { anObject, callback, checkOptions, oneOf, text } from '../options.js';
import type { RestOfOutput } from '../resources/output-reader.js';
import { type OutputCallOptions, type OutputClient, requireOutputClient } from '../resources/output-source.js';
import type { OutputSource } from './destination.js';

/** What serving files needs of a client; a GenClient has it. */
export interface OutputHandlerClient {
  /** The calls on a job and its file. */
  readonly jobs: Omit<OutputClient['jobs'], 'output'> & {
    output(
      job: string,
      options?: OutputCallOptions & { range?: RestOfOutput['range'] | string; ifRange?: string; resume?: boolean },
    ): PromiseLike<Response>;
  };
}

/** What `createOutputHandler` takes. */
export interface OutputHandlerOptions {
  /** The client that reads the files. Its key never reaches the page. */
  readonly client: OutputHandlerClient;
  /**
   * Says whether this request may see the file of this job: only `true` lets it. Look the job up in your own data, by the
   * user that the request belongs to.
   */
  readonly authorize: (request: Request, jobId: string) => boolean | Promise<boolean>;
  /**
   * Returns the job id that a request names. @default `?job=`, else the part of the path that looks like a job's id (an
   * extension is dropped), else the last part
   */
  readonly jobId?: ((request: Request) => string) | undefined;
  /**
   * Where the copy of a job's file is, so that views do not count against the service's 300 reads a minute: `r2(…)`, `s3(…)`
   * or an object with a `get` of your own. Without a copy, and where `get` has no answer within ten seconds, the file is read from the
   * service. @default the service
   */
  readonly source?: ((jobId: string, request: Request) => MaybeSource | Promise<MaybeSource>) | undefined;
  /** Whether a browser shows the file or saves it. `?download` in the URL saves it in any case. @default 'inline' */
  readonly disposition?: 'inline' | 'attachment' | undefined;
  /** The name under which a browser saves the file. What is unsafe in a name is replaced. @default the job id */
  readonly filename?: ((jobId: string, request: Request) => string | Promise<string>) | undefined;
  /** The Cache-Control header of a file. @default 'private, no-cache' */
  readonly cacheControl?: string | undefined;
  /**
   * Told of what is not the page's fault: an `authorize`, a `filename` or a `source` that throws, and a service that cannot
   * be read. It only observes. @default nothing is told
   */
  readonly onError?: ((error: unknown, request: Request) => unknown) | undefined;
}

type MaybeSource = OutputSource | undefined | null;

const HANDLER_OPTIONS = z.strictObject({
  client: anObject,
  authorize: callback,
  jobId: callback,
  source: callback,
  disposition: oneOf('inline', 'attachment'),
  filename: callback,
  cacheControl: text,
  onError: callback,
});

/** Checks the options of `createOutputHandler`. Without `authorize` everybody could see every file. */
export function checkOutputHandlerOptions(options: OutputHandlerOptions): void {
  checkOptions('createOutputHandler', HANDLER_OPTIONS, options);
  requireOutputClient('createOutputHandler({ client, authorize })', options?.client);
  if (options.authorize === undefined) {
    throw new GenError(
      'createOutputHandler needs authorize: a function (request, jobId) that returns true where the request may see the file. Without it everybody could see every file.',
    );
  }
}
