import type {
  Experimental_VideoModelV4,
  Experimental_VideoModelV4CallOptions,
  Experimental_VideoModelV4Result,
} from '@ai-sdk/provider';
import type { CreatedJob, GenClient } from '../index.js';
import { readProviderOptions } from './call-options.js';
import { discardInputs } from './inputs.js';
import { createOutputKeys, keyFromHeaders, plainHeaders } from './output-keys.js';
import { type Output, readOutput, responseOf, serviceWarnings, settle } from './outputs.js';
import { type PreparedVideo, prepareVideo } from './video-call.js';
import { operationStatus, startJobs, toVideo } from './video-operation.js';

type VideoCall = Experimental_VideoModelV4CallOptions & { readonly webhookUrl?: string };

/** A video model of the service for `experimental_generateVideo` and the start and status calls. */
export function createVideoModel(client: () => GenClient, modelId: string): Experimental_VideoModelV4 {
  const outputKeys = createOutputKeys();
  /** Runs one call with a key for each output; uploads are taken back when no job came of them. */
  const withKeys = async <T>(call: VideoCall, run: (video: PreparedVideo, keys: readonly string[]) => Promise<T>) => {
    const callersKey = readProviderOptions(call.providerOptions).idempotencyKey ?? keyFromHeaders(call.headers);
    const { keys, settled } = outputKeys(call, callersKey);
    try {
      return await run(await prepareVideo(client(), modelId, call), keys);
    } finally {
      settled();
    }
  };
  return {
    specificationVersion: 'v4',
    provider: 'gen.video',
    modelId,
    // One call makes all outputs, so that one failing cannot lose the others that are paid for.
    maxVideosPerCall: Number.MAX_SAFE_INTEGER,
    doGenerate: (call) => withKeys(call, (video, keys) => generate(client(), { modelId, call, video, keys })),
    doStart: (call) => withKeys(call, (video, keys) => start(client(), { modelId, call, video, keys })),
    doStatus: ({ operation, abortSignal }) => operationStatus(client(), modelId, { operation, signal: abortSignal }),
    async handleWebhookOption({ webhook }) {
      const { url, received } = await webhook();
      return { webhookUrl: url, received };
    },
  };
}

interface VideoRun {
  readonly modelId: string;
  readonly call: VideoCall;
  readonly video: PreparedVideo;
  readonly keys: readonly string[];
}

async function start(client: GenClient, { modelId, call, video, keys }: VideoRun) {
  const startCall = {
    headers: plainHeaders(call.headers),
    signal: call.abortSignal,
    webhook: call.webhookUrl !== undefined,
  };
  try {
    return await startJobs(client, modelId, { video, keys, call: startCall });
  } catch (error) {
    await discardInputs(client, video.inputs);
    throw error;
  }
}

async function generate(
  client: GenClient,
  { modelId, call, video, keys }: VideoRun,
): Promise<Experimental_VideoModelV4Result> {
  const warnings = [...video.warnings];
  let created = 0;
  const tasks = keys.map((idempotencyKey) =>
    makeVideo(client, {
      body: video.body,
      options: { ...video.own.wait, idempotencyKey, headers: plainHeaders(call.headers) },
      signal: call.abortSignal,
      onCreated: (made) => {
        created++;
        warnings.push(...serviceWarnings(made));
      },
    }),
  );
  try {
    const { done, warnings: failures } = await settle(tasks, call.abortSignal);
    return {
      videos: done.map(toVideo),
      warnings: [...warnings, ...failures],
      providerMetadata: { gen: { videos: done.map((output) => output.metadata) } },
      response: responseOf(modelId),
    };
  } finally {
    if (created === 0) await discardInputs(client, video.inputs);
  }
}

async function makeVideo(
  client: GenClient,
  call: {
    readonly body: Record<string, unknown>;
    readonly options: Record<string, unknown>;
    readonly signal: AbortSignal | undefined;
    readonly onCreated: (created: CreatedJob) => void;
  },
): Promise<Output> {
  let idempotencyKey: string | undefined;
  const job = await client.videos.createAndWait(call.body as never, {
    ...call.options,
    signal: call.signal,
    onCreated: (made: CreatedJob) => {
      idempotencyKey = made.idempotencyKey;
      call.onCreated(made);
    },
  });
  return readOutput(client, job, { signal: call.signal, created: { mediaType: 'video', idempotencyKey } });
}
