import type { GenClient } from '../client.js';
import type { ClientOptions } from '../client-options.js';

/** A ready client, else the options for one; left out, everything comes from the environment. */
export type GenProviderSettings = { readonly client: GenClient } | ClientOptions;

/** The options of a client that may leave the process: no key, no secret, no header, no function. */
type PlainOptions = Pick<
  ClientOptions,
  'baseUrl' | 'timeoutMs' | 'maxRetries' | 'maxRetryAfterMs' | 'preflight' | 'rateLimit'
>;

/** A model as a workflow stores it. The API key is never part of it: the other process takes it from its environment. */
export interface SerializedModel {
  readonly modelId: string;
  readonly config: PlainOptions;
}

/** Where the models of a provider get their client from. */
export interface ModelSource {
  /** Made when it is first needed, so that a missing option is an error of that call and not of the import. */
  readonly client: () => Promise<GenClient>;
  /** What another process needs to make the same client with its own key. */
  readonly config: () => PlainOptions;
}

/** The source for the settings of a provider. */
export function modelSource(settings: GenProviderSettings): ModelSource {
  let made: GenClient | undefined;
  return {
    async client() {
      if ('client' in settings) return settings.client;
      // A workflow loads this door to name its models, in a VM that refuses the stream which ky makes when it loads.
      const { GenClient } = await import('../client.js');
      made ??= new GenClient(settings);
      return made;
    },
    config: () =>
      'client' in settings ? plainOptions({ baseUrl: clientBaseUrl(settings.client) }) : plainOptions(settings),
  };
}

/** The options that may leave the process, without those that were left out. */
function plainOptions(options: ClientOptions): PlainOptions {
  const { baseUrl, timeoutMs, maxRetries, maxRetryAfterMs, preflight, rateLimit } = options;
  const all = { baseUrl: baseUrl && String(baseUrl), timeoutMs, maxRetries, maxRetryAfterMs, preflight, rateLimit };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

function clientBaseUrl(client: GenClient): string | undefined {
  const { baseUrl } = client.toJSON();
  return typeof baseUrl === 'string' ? baseUrl : undefined;
}
