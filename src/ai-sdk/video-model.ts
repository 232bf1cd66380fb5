import type {
  Experimental_VideoModelV4,
  Experimental_VideoModelV4CallOptions,
  Experimental_VideoModelV4Result,
} from '@ai-sdk/provider';
import type { GenClient } from '../client.js';
import { readProviderOptions } from './call-options.js';
import { discardInputs } from './inputs.js';
import { makeOutputs } from './make-outputs.js';
import { createOutputKeys, keyFromHeaders, plainHeaders } from './output-keys.js';
import { responseOf } from './outputs.js';
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
  const { done, warnings } = await makeOutputs(client, keys, {
    mediaType: 'video',
    body: video.body,
    wait: video.own.wait,
    headers: plainHeaders(call.headers),
    signal: call.abortSignal,
    inputs: video.inputs,
  });
  return {
    videos: done.map(toVideo),
    warnings: [...video.warnings, ...warnings],
    providerMetadata: { gen: { videos: done.map((output) => output.metadata) } },
    response: responseOf(modelId),
  };
}
