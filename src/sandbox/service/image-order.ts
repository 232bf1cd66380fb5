import { DEFAULTS, IMAGE_TOKENS, PERSON_MATCH } from '../world/choices.js';
import { failure, type PlannedEnd } from '../world/outcomes.js';
import { type Fields, itemFields, show } from './fields.js';
import { checkPlainFields, type Order, readChoice, readModel, readPrompt, readWebhookUrl } from './order.js';
import { listedReferences, type Reference } from './references.js';
import { Refusal } from './refusal.js';

const URL_LISTS = ['reference_image_urls', 'referenceImageUrls', 'reference_images'];
const UPLOAD_LISTS = ['reference_upload_ids', 'reference_image_upload_ids'];

/** Checks POST /v1/images; throws the code of the first rule that is broken. */
export function readImageOrder(fields: Fields): Order {
  checkPlainFields(fields);
  const { alias, row } = readModel(fields, 'image', DEFAULTS.imageModel);
  const prompt = readPrompt(fields, 'image');
  const references = [...listedReferences(fields, 'image', [...UPLOAD_LISTS, ...URL_LISTS]), ...referenceItems(fields)];
  const hasReferences = references.length > 0 || fields.list('character_ids').length > 0;
  const order = imageOrder(fields, { alias, row, prompt });
  return { ...order, references, startsAs: 'queued', end: personMatchEnd(prompt, hasReferences) };
}

/** Checks POST /v1/characters in prompt mode. */
export function readCharacterOrder(fields: Fields): Order {
  checkPlainFields(fields);
  const mode = fields.text('mode') ?? 'prompt';
  if (mode !== 'prompt') throw new Refusal('invalid_request', `mode: ${show(mode)} is none of register, prompt.`);
  const name = fields.text('name');
  if (!name?.trim()) throw new Refusal('invalid_request', 'name: a non-empty name is required.');
  const { alias, row } = readModel(fields, 'image', DEFAULTS.characterModel);
  const prompt = readPrompt(fields, 'image');
  if (PERSON_MATCH.test(prompt)) {
    throw new Refusal('character_prompt_unsafe', 'prompt: it asks to match a real person; describe a fictional one.');
  }
  const references = listedReferences(fields, 'portrait', [...UPLOAD_LISTS, ...URL_LISTS]);
  return { ...imageOrder(fields, { alias, row, prompt }), references, startsAs: 'created' };
}

/**
 * Wording that asks to match a real person (spec: POST /v1/characters, rules 2 and 3): refused where a reference or a
 * character goes along, else the job ends as `generation_rejected` with the documented message.
 */
export function personMatchEnd(prompt: string, hasReferences: boolean): PlannedEnd | undefined {
  if (!PERSON_MATCH.test(prompt)) return undefined;
  if (hasReferences) {
    throw new Refusal(
      'person_match_prompt_unsafe',
      'prompt: it asks to match a real person; register an owned character.',
    );
  }
  return failure('generation_rejected', { errorMessage: 'Input text contains sensitive information' });
}

function imageOrder(
  fields: Fields,
  { alias, row, prompt }: ReturnType<typeof readModel> & { prompt: string },
): Omit<Order, 'references' | 'startsAs'> {
  const aspectRatio = readChoice({
    fields,
    names: ['ratio', 'aspect_ratio'],
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
    seed: undefined,
    cost: IMAGE_TOKENS[alias]?.[resolution] ?? 1,
    isStrict: false,
    webhookUrl: readWebhookUrl(fields),
  };
}

function referenceItems(fields: Fields): Reference[] {
  return fields.list('references').map((item): Reference => {
    const part = itemFields('references', item);
    const url = part.text('url');
    if (part.raw('type') === 'image_url' && url !== undefined && URL.canParse(url)) {
      return { role: 'image', field: 'references', url };
    }
    throw new Refusal('invalid_request', `references: ${show(item)} is no { type: "image_url", url }.`);
  });
}
