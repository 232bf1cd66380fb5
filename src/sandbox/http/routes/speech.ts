import { Hono } from 'hono';
import { type Fields, show } from '../../service/fields.js';
import { type Order, readWebhookUrl } from '../../service/order.js';
import { Refusal } from '../../service/refusal.js';
import { MAX_PROMPT_CHARS, SPEECH_MODEL, SPEECH_PATH, SPEECH_TOKENS, VOICES } from '../../world/choices.js';
import type { World } from '../../world/world.js';
import { createJob } from '../caller.js';

/** The speech operation. The spec names its errors and neither path nor payload: both are the sandbox's choice. */
export function speechRoutes(world: World): Hono {
  return new Hono().post(SPEECH_PATH, (context) =>
    createJob(world, context, { door: { scope: 'speech:create' }, read: readSpeechOrder }),
  );
}

function readSpeechOrder(fields: Fields): Order {
  const prompt = fields.text('text');
  if (!prompt?.trim()) throw new Refusal('prompt_required', 'text: a non-empty text is required.');
  if (prompt.length > MAX_PROMPT_CHARS.image) throw new Refusal('prompt_too_long', 'text: it is too long.');
  const voice = fields.text('voice_id', 'voice');
  if (!VOICES.some(({ voice_id }) => voice_id === voice)) {
    throw new Refusal('voice_required', `voice: ${show(voice)} is none; use an id from GET /v1/voices.`);
  }
  return {
    kind: 'speech',
    modelId: SPEECH_MODEL,
    prompt,
    media: { kind: 'audio', aspectRatio: '', resolution: '', durationS: 0 },
    seed: undefined,
    cost: SPEECH_TOKENS,
    references: [],
    isStrict: false,
    webhookUrl: readWebhookUrl(fields),
    startsAs: 'processing',
  };
}
