import { show } from '../../schemas/show.js';
import { DEFAULTS, PERSON_MATCH } from '../world/choices.js';
import { failure, type PlannedEnd } from '../world/outcomes.js';
import { RequestFields } from './fields.js';
import {
  checkPlainFields,
  type Order,
  readChoice,
  readModel,
  readPrompt,
  readWebhookUrl,
  requireValue,
} from './order.js';
import { listedReferences, referenceItems } from './references.js';
import { Refusal } from './refusal.js';

const REFERENCE_LISTS = ['reference_upload_ids', 'reference_image_urls', 'referenceImageUrls', 'reference_images'];

/** Checks POST /v1/images. Throws the code of the first rule that is broken. */
export function readImageOrder(fields: RequestFields): Order {
  checkPlainFields(fields, ['watermark'], ['safety_identifier', 'response_format']);
  requireValue(fields, 'response_format', ['url']);
  const { alias, row } = readModel(fields, 'image', DEFAULTS.imageModel);
  const prompt = readPrompt(fields, 'image');
  const references = [...listedReferences(fields, 'image', REFERENCE_LISTS), ...referenceItems(fields)];
  const hasReferences = references.length > 0 || fields.list('character_ids').length > 0;
  const order = imageOrder(fields, { alias, row, prompt }, 'ratio');
  return { ...order, call: 'images', references, startsAs: 'queued', end: personMatchEnd(prompt, hasReferences) };
}

/** Checks POST /v1/characters in prompt mode. */
export function readCharacterOrder(fields: RequestFields): Order {
  checkPlainFields(fields, [], []);
  const mode = fields.text('mode') ?? 'prompt';
  if (mode !== 'prompt') throw new Refusal('invalid_request', `mode must be register or prompt, not ${show(mode)}.`);
  if (!fields.text('name')?.trim()) throw new Refusal('invalid_request', 'name must be a non-empty string.');
  const { alias, row } = readModel(new RequestFields({}), 'image', DEFAULTS.characterModel);
  const prompt = readPrompt(fields, 'image');
  if (PERSON_MATCH.test(prompt)) {
    const message = 'The prompt asks to match a real person. Describe a fictional character.';
    throw new Refusal('character_prompt_unsafe', message);
  }
  const references = listedReferences(fields, 'portrait', ['reference_upload_ids']);
  return {
    ...imageOrder(fields, { alias, row, prompt }, 'aspect_ratio'),
    call: 'characters',
    references,
    startsAs: 'created',
  };
}

/**
 * Wording that asks to match a real person is refused beside a reference or a
 * character. Without one the job ends as `generation_rejected` with the documented message.
 */
export function personMatchEnd(prompt: string, hasReferences: boolean): PlannedEnd | undefined {
  if (!PERSON_MATCH.test(prompt)) return undefined;
  if (hasReferences) {
    const message = 'The prompt asks to match a real person. Register an owned character instead.';
    throw new Refusal('person_match_prompt_unsafe', message);
  }
  return failure('generation_rejected', { errorMessage: 'Input text contains sensitive information' });
}

function imageOrder(
  fields: RequestFields,
  { alias, row, prompt }: ReturnType<typeof readModel> & { prompt: string },
  ratioField: 'ratio' | 'aspect_ratio',
): Omit<Order, 'call' | 'references' | 'startsAs'> {
  const aspectRatio = readChoice({
    fields,
    names: [ratioField],
    offered: row.aspectRatios ?? [],
    fallback: DEFAULTS.imageRatio,
    code: 'aspect_ratio_not_supported',
  });
  const resolution = readChoice({
    fields,
    names: ['resolution'],
    offered: row.resolutions,
    fallback: DEFAULTS.imageResolution,
    code: 'resolution_not_supported',
  });
  return {
    kind: 'image',
    modelId: alias,
    prompt,
    media: { kind: 'image', aspectRatio, resolution, durationS: 0 },
    audio: false,
    seed: undefined,
    isStrict: false,
    webhookUrl: readWebhookUrl(fields),
  };
}
