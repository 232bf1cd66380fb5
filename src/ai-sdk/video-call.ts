import type { Experimental_VideoModelV4CallOptions, SharedV4Warning } from '@ai-sdk/provider';
import { FIRST_FRAME, type InputFile, inputFields, LAST_FRAME, referenceSlot } from './inputs.js';
import type { ReadProviderOptions } from './provider-options.js';
import { videoSettings } from './settings.js';

/** A call of the AI SDK's core for videos. */
export type VideoCall = Experimental_VideoModelV4CallOptions & { readonly webhookUrl?: string };

/** A video call in the service's own words. */
export interface PreparedVideo {
  readonly body: Record<string, unknown>;
  readonly own: ReadProviderOptions;
  readonly warnings: SharedV4Warning[];
}

/** Turns the settings of a call into the body of POST /v1/videos. */
export function prepareVideo(modelId: string, call: VideoCall, own: ReadProviderOptions): PreparedVideo {
  const { fields, warnings } = videoSettings(call);
  const body = {
    model: modelId,
    prompt: call.prompt ?? '',
    ...fields,
    ...inputFields(callFiles(call)),
    ...(call.webhookUrl !== undefined && { webhook_url: call.webhookUrl }),
    ...own.fields,
  };
  return { body, own, warnings };
}

/** The start image comes once, whether the core gives it as `image`, as a frame, or as both. */
function callFiles(call: VideoCall): InputFile[] {
  const frames = call.frameImages ?? [];
  const first = frames.find((frame) => frame.frameType === 'first_frame')?.image ?? call.image;
  const last = frames.find((frame) => frame.frameType === 'last_frame')?.image;
  return [
    ...(first ? [{ file: first, slot: FIRST_FRAME }] : []),
    ...(last ? [{ file: last, slot: LAST_FRAME }] : []),
    ...(call.inputReferences ?? []).map((file) => ({ file, slot: referenceSlot(file) })),
  ];
}
