import type { Experimental_VideoModelV4CallOptions, SharedV4Warning } from '@ai-sdk/provider';
import type { GenClient } from '../client.js';
import { type ReadProviderOptions, readProviderOptions } from './call-options.js';
import { FIRST_FRAME, LAST_FRAME, type PlacedFile, referenceSlot, type SentInputs, sendInputs } from './inputs.js';
import { videoSettings } from './settings.js';

/** A video call in the service's own words, its files uploaded. */
export interface PreparedVideo {
  readonly body: Record<string, unknown>;
  readonly own: ReadProviderOptions;
  readonly inputs: SentInputs;
  readonly warnings: SharedV4Warning[];
}

/** Uploads the files of a call and turns its settings into the body of POST /v1/videos. */
export async function prepareVideo(
  client: GenClient,
  modelId: string,
  call: Experimental_VideoModelV4CallOptions & { readonly webhookUrl?: string },
): Promise<PreparedVideo> {
  const own = readProviderOptions(call.providerOptions);
  const { fields, warnings } = videoSettings(call);
  const inputs = await sendInputs(client, placedFiles(call), call.abortSignal);
  const body = {
    model: modelId,
    prompt: call.prompt ?? '',
    ...fields,
    ...inputs.fields,
    ...(call.webhookUrl !== undefined && { webhook_url: call.webhookUrl }),
    ...own.fields,
  };
  return { body, own, inputs, warnings };
}

/** The start image comes once, whether the core gives it as `image`, as a frame, or as both. */
function placedFiles(call: Experimental_VideoModelV4CallOptions): PlacedFile[] {
  const frames = call.frameImages ?? [];
  const first = frames.find((frame) => frame.frameType === 'first_frame')?.image ?? call.image;
  const last = frames.find((frame) => frame.frameType === 'last_frame')?.image;
  return [
    ...(first ? [{ file: first, slot: FIRST_FRAME }] : []),
    ...(last ? [{ file: last, slot: LAST_FRAME }] : []),
    ...(call.inputReferences ?? []).map((file) => ({ file, slot: referenceSlot(file) })),
  ];
}
