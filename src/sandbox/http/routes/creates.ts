import { Hono } from 'hono';
import { show } from '../../../schemas/show.js';
import { type Order, readEditOrder, readImageOrder, readVideoOrder, readWebhookUrl } from '../../service/order.js';
import type { RequestFields } from '../../service/request.js';
import { Refusal } from '../../service/request.js';
import { MAX_PROMPT_CHARS, SPEECH_MODEL, SPEECH_PATH, VOICES } from '../../world/choices.js';
import type { World } from '../../world/world.js';
import { createJob } from '../caller.js';

/** POST /v1/images, /v1/videos, /v1/video-edits, and the speech operation. */
export function createRoutes(world: World): Hono {
  const { shapes } = world.settings;
  return new Hono()
    .post('/v1/images', (context) => createJob(world, context, { scope: 'images:create', read: readImageOrder }))
    .post('/v1/videos', (context) => {
      const read = (fields: RequestFields) => readVideoOrder(fields, shapes);
      return createJob(world, context, { scope: 'videos:create', lane: 'videos.create', read, isDocumented: true });
    })
    .post('/v1/video-edits', (context) => {
      return createJob(world, context, { scope: 'video_edits:create', read: (fields) => readEditOrder(fields) });
    })
    .post(SPEECH_PATH, (context) => createJob(world, context, { scope: 'speech:create', read: readSpeechOrder }));
}

/** The speech operation. The document names its errors only: path and payload are the sandbox's choice. */
function readSpeechOrder(fields: RequestFields): Order {
  const prompt = fields.text('text');
  if (!prompt?.trim()) throw new Refusal('prompt_required', 'text must be a non-empty string.');
  const most = MAX_PROMPT_CHARS.image;
  if (prompt.length > most) throw new Refusal('prompt_too_long', `text may have at most ${most} characters.`);
  const voice = fields.text('voice_id', 'voice');
  if (!VOICES.some(({ voice_id }) => voice_id === voice)) {
    throw new Refusal('voice_required', `voice must be an id from GET /v1/voices, not ${show(voice)}.`);
  }
  return {
    kind: 'speech',
    call: 'speech',
    modelId: SPEECH_MODEL,
    prompt,
    media: { kind: 'audio', aspectRatio: '', resolution: '', durationS: 0 },
    audio: true,
    seed: undefined,
    references: [],
    isStrict: false,
    webhookUrl: readWebhookUrl(fields),
    startsAs: 'processing',
  };
}
