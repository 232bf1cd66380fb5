// The rows of docs/coming-from.md: the other client's call, and ours. The compiler checks both against the real packages.
import { createFalClient, fal } from '@fal-ai/client';
import RunwayML, { TaskFailedError, TaskTimedOutError } from '@runwayml/sdk';
import {
  APIError,
  GenClient,
  isCompleted,
  JobFailedError,
  RateLimitError,
  verifyWebhook,
  WaitTimeoutError,
} from 'gen-client';
import { saveOutput } from 'gen-client/node';
import OpenAI from 'openai';
import Replicate, { type FileOutput, type Prediction, parseProgressFromLogs, validateWebhook } from 'replicate';

/** The code in the left column, the other client's call, and ours. */
type Row = readonly [left: string, theirs: (...args: never[]) => unknown, ours: (...args: never[]) => unknown];

const apiKey = 'key';
const baseUrl = 'https://service.test';
const prompt = 'a fox';
const id = 'job_1';
const secret = 'whsec_1';
const signal = new AbortController().signal;
const file = new Blob(['x']);
const client = new GenClient({ apiKey, baseUrl });
const openai = new OpenAI({ apiKey });
const replicate = new Replicate({ auth: apiKey });
const runway = new RunwayML({ apiKey });
const falModel = 'fal-ai/veo3';
const runwayParams = {
  model: 'gen4.5',
  promptImage: 'https://a.test/a.png',
  promptText: prompt,
  ratio: '1280:720',
  duration: 5,
} as const;

export const FAL: readonly Row[] = [
  ['fal.config', () => fal.config({ credentials: apiKey }), () => new GenClient({ apiKey, baseUrl })],
  [
    'fal.subscribe',
    () => fal.subscribe(falModel, { input: { prompt }, onQueueUpdate: ({ status }) => console.log(status) }),
    () =>
      client.videos.createAndWait(
        { model: 'svc-video-fast', prompt },
        { onUpdate: ({ status }) => console.log(status) },
      ),
  ],
  [
    'fal.run',
    () => createFalClient({ credentials: apiKey }).run('fal-ai/flux/dev', { input: { prompt } }),
    () => client.images.createAndWait({ model: 'svc-image-fast', prompt }),
  ],
  [
    'fal.subscribe',
    () => fal.subscribe(falModel, { input: { prompt }, abortSignal: signal }),
    () => client.videos.createAndWait({ prompt }, { signal }),
  ],
  [
    'fal.queue.submit',
    () => fal.queue.submit(falModel, { input: { prompt }, webhookUrl: 'https://a.test' }),
    () => client.videos.create({ prompt, webhook_url: 'https://a.test' }),
  ],
  ['fal.queue.status', () => fal.queue.status(falModel, { requestId: id }), () => client.jobs.get(id)],
  [
    'fal.queue.result',
    () => fal.queue.result(falModel, { requestId: id }),
    () => [client.jobs.get(id), client.waitForJob(id)],
  ],
  ['fal.queue.cancel', () => fal.queue.cancel(falModel, { requestId: id }), () => undefined],
  [
    'fal.storage.upload',
    async (): Promise<string> => fal.storage.upload(file),
    async (): Promise<string> => (await client.uploads.upload(file)).upload_id,
  ],
  [
    'result.data.video.url',
    async () => (await fal.subscribe(falModel, { input: { prompt } })).data.video.url,
    () => saveOutput(client, id, 'fox.mp4'),
  ],
];

export const OPENAI: readonly Row[] = [
  [
    'new OpenAI',
    () => new OpenAI({ apiKey, baseURL: baseUrl, timeout: 5_000 }),
    () => new GenClient({ apiKey, baseUrl, timeoutMs: 5_000 }),
  ],
  [
    'openai.images.generate',
    () => openai.images.generate({ model: 'gpt-image-1', prompt, size: '1024x1024' }),
    () => client.images.createAndWait({ prompt, ratio: '1:1' }),
  ],
  [
    'openai.images.edit',
    () => openai.images.edit({ image: new File([file], 'a.png'), prompt }),
    () => client.images.create({ prompt, reference_upload_ids: [file] }),
  ],
  [
    'openai.videos.create',
    () => openai.videos.create({ prompt, seconds: '4', size: '1280x720' }),
    () => client.videos.create({ prompt, duration: 4, aspect_ratio: '16:9' }),
  ],
  [
    'openai.videos.create',
    () => openai.videos.create({ prompt, input_reference: new File([file], 'a.png') }),
    () => client.videos.create({ prompt, first_frame_upload_id: file }),
  ],
  ['openai.videos.retrieve', () => openai.videos.retrieve(id), () => client.waitForJob(id)],
  [
    'video.status',
    async () => (await openai.videos.retrieve(id)).status === 'in_progress',
    async () => (await client.jobs.get(id)).status === 'processing',
  ],
  [
    'openai.videos.downloadContent',
    () => openai.videos.downloadContent(id),
    () => [client.jobs.output(id), saveOutput(client, id, 'fox.mp4')],
  ],
  ['openai.videos.delete', () => openai.videos.delete(id), () => undefined],
  [
    'openai.webhooks.unwrap',
    (body: string, headers: Headers) => openai.webhooks.unwrap(body, headers, secret),
    (body: string, headers: Headers) => verifyWebhook({ body, headers }, { secret }),
  ],
  [
    'error instanceof OpenAI.APIError',
    (error: unknown) => error instanceof OpenAI.APIError && error.status,
    (error: unknown) => APIError.isInstance(error) && error.status,
  ],
  [
    'OpenAI.RateLimitError',
    (error: unknown) => error instanceof OpenAI.RateLimitError,
    (error: unknown) => [new GenClient({ apiKey, baseUrl, rateLimit: 'throw' }), RateLimitError.isInstance(error)],
  ],
];

export const REPLICATE: readonly Row[] = [
  [
    'replicate.run',
    () => replicate.run('owner/model', { input: { prompt } }),
    () => client.images.createAndWait({ model: 'svc-image-fast', prompt }),
  ],
  [
    'replicate.run',
    (progress: (prediction: Prediction) => void) => replicate.run('owner/model', { input: { prompt } }, progress),
    () => client.images.createAndWait({ prompt }, { onUpdate: ({ status }) => console.log(status) }),
  ],
  [
    'replicate.run',
    () => replicate.run('owner/model', { input: { prompt }, wait: { mode: 'poll', interval: 500 }, signal }),
    () => client.images.createAndWait({ prompt }, { pollIntervalMs: 2_500, signal }),
  ],
  [
    'replicate.predictions.create',
    () =>
      replicate.predictions.create({
        model: 'owner/model',
        input: { prompt },
        webhook: 'https://a.test',
        webhook_events_filter: ['completed'],
      }),
    () => client.videos.create({ prompt, webhook_url: 'https://a.test' }),
  ],
  ['replicate.wait', (prediction: Prediction) => replicate.wait(prediction), () => client.waitForJob(id)],
  [
    'prediction.status',
    (prediction: Prediction) => prediction.status === 'succeeded',
    async () => isCompleted(await client.jobs.get(id)),
  ],
  [
    'output.url',
    (output: FileOutput) => [output.url(), output.blob(), output.getReader()],
    () => [client.jobs.output(id), saveOutput(client, id, 'fox.mp4')],
  ],
  [
    'parseProgressFromLogs',
    (prediction: Prediction) => parseProgressFromLogs(prediction),
    async () => {
      for await (const { progress, etaMs } of client.watchJob(id)) console.log(progress, etaMs);
    },
  ],
  ['replicate.predictions.list', () => replicate.predictions.list(), () => client.unfinishedCreates()],
  [
    'validateWebhook',
    (request: Request): Promise<boolean> => validateWebhook(request, secret),
    (request: Request) => verifyWebhook(request, { secret }),
  ],
  ['replicate.predictions.cancel', () => replicate.predictions.cancel(id), () => undefined],
];

export const RUNWAY: readonly Row[] = [
  [
    'new RunwayML',
    () => new RunwayML({ apiKey, timeout: 5_000 }),
    () => new GenClient({ apiKey, baseUrl, timeoutMs: 5_000 }),
  ],
  [
    'runway.imageToVideo.create',
    () => runway.imageToVideo.create(runwayParams),
    () => client.videos.create({ prompt, first_frame_url: 'https://a.test/a.png', aspect_ratio: '16:9', duration: 5 }),
  ],
  [
    'runway.imageToVideo.create',
    () => runway.imageToVideo.create(runwayParams).waitForTaskOutput(),
    () => client.videos.createAndWait({ prompt }),
  ],
  [
    '.waitForTaskOutput',
    () => runway.tasks.retrieve(id).waitForTaskOutput({ timeout: 60_000, abortSignal: signal }),
    () => client.waitForJob(id, { timeoutMs: 60_000, signal }),
  ],
  ['runway.tasks.retrieve', () => runway.tasks.retrieve(id), () => client.jobs.get(id)],
  ['runway.tasks.delete', () => runway.tasks.delete(id), () => undefined],
  [
    'runway.uploads.createEphemeral',
    () => runway.uploads.createEphemeral({ file: new File([file], 'a.png') }),
    () => client.uploads.upload(file),
  ],
  [
    'TaskFailedError',
    (error: unknown) => error instanceof TaskFailedError && error.taskDetails,
    (error: unknown) => JobFailedError.isInstance(error) && [error.code, error.recovery, error.job],
  ],
  [
    'TaskTimedOutError',
    (error: unknown) => error instanceof TaskTimedOutError,
    (error: unknown) => WaitTimeoutError.isInstance(error) && error.jobId,
  ],
  [
    'runway.organization.retrieve',
    async () => (await runway.organization.retrieve()).creditBalance,
    async () => (await client.videos.create({ prompt })).balance_tokens,
  ],
];
