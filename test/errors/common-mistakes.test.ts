// The message for each common mistake says what to do.
import { expect, it } from 'vitest';
import { saveOutput } from '../../src/adapters/node/index.js';
import { GenClient, verifyWebhook } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { rejection } from '../transport/support.js';

const prompt = 'a fox';
const sandbox = createSandbox();
const client = sandbox.client();
/** Methods without types, as in JavaScript. */
type Untyped = (...args: readonly unknown[]) => Promise<unknown>;
const videos: Record<'create' | 'createAndWait', Untyped> = client.videos as never;
const images: Record<'create', Untyped> = client.images as never;
const verify: Untyped = verifyWebhook as never;
const clientVerify: Untyped = client.verifyWebhook.bind(client) as never;
const url = 'https://a.test/a.png?token=secret';

const MISTAKES: readonly (readonly [string, () => unknown, message: string])[] = [
  [
    'a duration as a string',
    () => videos.create({ prompt, duration: '5' }),
    'PreflightError: duration: must be a number, not "5". Pass duration: 5.',
  ],
  [
    'a duration that the model does not support',
    () => videos.create({ prompt, duration: 7 }),
    'PreflightError: duration: must be one of 4, 5, 6, 8, 10 for svc-video-fast, not 7.',
  ],
  [
    'a data URI in an upload field',
    () => videos.create({ prompt, first_frame_upload_id: 'data:image/png;base64,AA' }),
    'PreflightError: first_frame_upload_id: accepts an upload ID or a file, not a data URI. Pass a Buffer or a Blob.',
  ],
  [
    'a URL in an upload field',
    () => videos.create({ prompt, first_frame_upload_id: url }),
    'PreflightError: first_frame_upload_id: accepts an upload ID or a file, not a URL. Pass it as first_frame_url.',
  ],
  [
    'a URL in a list of uploads',
    () => images.create({ prompt, reference_upload_ids: [url] }),
    'PreflightError: reference_upload_ids[0]: accepts an upload ID or a file, not a URL. Pass it as reference_image_urls.',
  ],
  [
    'a path in an upload field',
    () => videos.create({ prompt, first_frame_upload_id: './fox.png' }),
    'PreflightError: first_frame_upload_id: accepts an upload ID or a file, not a file name. Pass fromPath(path) or a Blob.',
  ],
  [
    'a field in the singular',
    () => videos.create({ prompt, character_id: 'x' }),
    'PreflightError: videos.create: Unknown parameter "character_id". Did you mean "character_ids"?',
  ],
  [
    "another SDK's field",
    () => videos.create({ prompt, promptText: 'x' }),
    'PreflightError: videos.create: Unknown parameter "promptText". Did you mean "prompt"?',
  ],
  [
    'a misspelled field',
    () => videos.create({ prompt, resolutoin: '720p' }),
    'PreflightError: videos.create: Unknown parameter "resolutoin". Did you mean "resolution"?',
  ],
  [
    'a string instead of params',
    () => videos.createAndWait('a fox'),
    'PreflightError: params: must be an object such as { prompt: "a fox" }, not "a fox".',
  ],
  [
    'an array instead of params',
    () => videos.createAndWait(['a fox']),
    'PreflightError: params: must be an object such as { prompt: "a fox at dawn" }, not an array.',
  ],
  [
    'a FormData instead of params',
    () => videos.createAndWait(new FormData()),
    'PreflightError: params: must be an object such as { prompt: "a fox at dawn" }, not a FormData.',
  ],
  [
    'a model of another kind',
    () => images.create({ prompt, model: 'svc-video-fast' }),
    'PreflightError: model: "svc-video-fast" does not support images. Use svc-image-fast, svc-image-pro, svc-image-gen-5-pro, svc-image-gen-5-flash.',
  ],
  [
    'a misspelled model, which the service rejects',
    () => videos.create({ prompt, model: 'svc-video-fst' }),
    'BadRequestError: model "svc-video-fst" is not a known video model. List them with GET /v1/models. Did you mean "svc-video-fast"?',
  ],
  [
    'a misspelled output option',
    () => client.jobs.output('job_1', { rang: 'bytes=0-1' } as never),
    'GenError: jobs.output has no option "rang". Did you mean "range"?',
  ],
  [
    'a misspelled option',
    () => videos.create({ prompt }, { timeout: 5_000 }),
    'GenError: videos.create has no option "timeout". Did you mean "timeoutMs"?',
  ],
  [
    'a number as a budget',
    () => new GenClient({ budget: 100 } as never),
    'GenError: budget must be the result of createBudget({ maxTokens }), not 100. Pass createBudget({ maxTokens: 100 }).',
  ],
  [
    'a secret instead of the options',
    () => verify({ body: '', headers: {} }, 'whsec'),
    'WebhookVerificationError: verifyWebhook: options must be an object, not a string. Pass { secret }.',
  ],
  [
    "Stripe's argument order",
    () => verify('{}', 't=1,v1=00', 'whsec'),
    'WebhookVerificationError: verifyWebhook: options must be an object, not a string. Pass { secret }.',
  ],
  [
    "Stripe's argument order on a client",
    () => clientVerify('{}', 't=1,v1=00', 'whsec'),
    'WebhookVerificationError: verifyWebhook: options must be an object, not a string. Pass { secret }.',
  ],
  [
    'a client without a webhook secret',
    () => new GenClient({ apiKey: 'k', baseUrl: 'https://service.test' }).verifyWebhook({ body: '', headers: {} }),
    'WebhookVerificationError: webhookSecret is missing. Pass { webhookSecret }, or set GEN_WEBHOOK_SECRET.',
  ],
  [
    'a link instead of a job',
    () => saveOutput(client, url, 'x.mp4'),
    'GenError: saveOutput(client, job, path): job is a URL. Pass the job or its ID.',
  ],
];

it.each(MISTAKES)('%s causes an error that says what to do', async (_, call, message) => {
  const error = await rejection((async () => call())());
  expect(String(error)).toBe(message);
  expect(error).not.toHaveProperty('code', expect.stringMatching(/^http_/));
  expect((error as Error).stack).toContain(message.split(': ').at(-1));
  expect(sandbox.ledger().reservedTokens).toBe(0);
});
