import type { SharedV4Warning } from '@ai-sdk/provider';
import type { GenClient } from '../client.js';
import type { WaitOptions } from '../polling/wait-options.js';
import type { CreatedJob } from '../schemas/created-job.js';
import type { CompletedJob } from '../schemas/job.js';
import type { RequestOptions } from '../schemas/request-options.js';
import { discardInputs, type SentInputs } from './inputs.js';
import { type Output, readOutput, type Settled, serviceWarnings, settle } from './outputs.js';

/** The `createAndWait` of a namespace, as far as the provider uses it. */
type CreateAndWait = (body: never, options: MakeOptions) => Promise<CompletedJob>;

interface MakeOptions extends Pick<WaitOptions, 'pollIntervalMs' | 'timeoutMs' | 'signal'> {
  readonly idempotencyKey: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly onCreated: (created: CreatedJob) => void;
}

/** One call for one or more outputs of the same body. */
export interface OutputCall {
  readonly mediaType: 'image' | 'video';
  readonly body: Readonly<Record<string, unknown>>;
  readonly wait: Pick<MakeOptions, 'pollIntervalMs' | 'timeoutMs'>;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: RequestOptions['signal'];
  readonly inputs: SentInputs;
}

/** Makes one paid job for each key and reads its file. The uploads of a call that made no job are taken back. */
export async function makeOutputs(
  client: GenClient,
  keys: readonly string[],
  call: OutputCall,
): Promise<Settled<Output>> {
  const warnings: SharedV4Warning[] = [];
  let created = 0;
  const onCreated = (made: CreatedJob) => {
    created++;
    warnings.push(...serviceWarnings(made));
  };
  try {
    const { done, warnings: failures } = await settle(
      keys.map((key) => makeOutput(client, { ...call, key, onCreated })),
      call.signal,
    );
    return { done, warnings: [...warnings, ...failures] };
  } finally {
    if (created === 0) await discardInputs(client, call.inputs);
  }
}

async function makeOutput(
  client: GenClient,
  call: OutputCall & { readonly key: string; readonly onCreated: (created: CreatedJob) => void },
): Promise<Output> {
  const { mediaType, key: idempotencyKey, headers, signal, onCreated } = call;
  const namespace: { createAndWait: CreateAndWait } = mediaType === 'image' ? client.images : client.videos;
  const options = { ...call.wait, idempotencyKey, headers, signal, onCreated };
  const job = await namespace.createAndWait(call.body as never, options);
  return readOutput(client, job, { signal, created: { mediaType, idempotencyKey } });
}
