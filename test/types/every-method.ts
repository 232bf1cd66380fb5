// Uses every client method once. test/types.test.ts compiles this file as a user would, and measures the time.
import {
  GenClient,
  idempotencyKeyFrom,
  isCompleted,
  isFinal,
  MODELS,
  modelCapabilities,
  verifyWebhook,
} from '../../src/index.js';

export async function everyMethod(signal: AbortSignal, request: Request): Promise<unknown[]> {
  const client = new GenClient({
    apiKey: async () => 'key',
    baseUrl: new URL('https://api.example.test'),
    webhookSecret: ['now', 'before'],
    rateLimit: 'wait',
    limits: { 'videos.create': { limit: 20, windowMs: 60_000 }, 'images.create': { limit: Number.POSITIVE_INFINITY } },
    logLevel: 'warn',
    logger: console,
    hooks: { onWait: ({ limit, waitMs }) => void [limit, waitMs] },
  });
  const options = { signal, timeoutMs: 10_000, maxRetries: 2, idempotencyKey: idempotencyKeyFrom('order', 42) };

  const models = await client.models.list();
  const integration = await client.models.integrationData(options);
  const voices = await client.voices.list();

  const uploaded = await client.uploads.upload(new Blob(['x']), {
    filename: 'a.png',
    onProgress: ({ sentBytes }) => void sentBytes,
  });
  const upload = await client.uploads.create({
    file_name: 'a.mp4',
    mime_type: 'video/mp4',
    file_size: 1,
    upload_type: 'VIDEO',
  });
  await client.uploads.put(upload, new Uint8Array(1));
  await client.uploads.complete(upload.upload_id);

  const { character_id } = await client.characters.register({ name: 'Ann', upload_id: uploaded.upload_id });
  const sheet = await client.characters.create({ name: 'Ann', prompt: 'short hair', aspect_ratio: '1:1' }, options);
  const portrait = await client.characters.createAndWait(
    { name: 'Ann', prompt: 'short hair' },
    { onUpdate: ({ status }) => void status },
  );
  const characters = await client.characters.list();
  const character = await client.characters.get(character_id);
  await client.characters.delete(character_id);

  const image = await client.images.create({
    model: 'svc-image-pro',
    prompt: 'a fox',
    ratio: '21:9',
    resolution: 'high',
    references: [{ type: 'image_url', url: 'https://a.test/a.png' }],
  });
  const picture = await client.images.createAndWait(
    { prompt: 'a fox', callback_url: 'https://a.test/hook' },
    { timeoutMs: 60_000 },
  );

  const video = await client.videos.create(
    { model: 'svc-video-gen-2-5', prompt: 'a fox', duration: 30, resolution: '1080p' },
    options,
  );
  const clip = await client.videos.createAndWait(
    {
      prompt: 'a fox',
      duration: 5,
      first_frame_upload_id: uploaded.upload_id,
      aspect_ratio: '16:9',
      webhook_url: 'https://a.test/hook',
    },
    {
      signal,
      timeoutMs: false,
      resubmitPending: true,
      onCreated: ({ job, quoted_token_cost }) => void [job.id, quoted_token_cost],
    },
  );
  const script = await client.videos.create({
    content: [
      { type: 'text', text: 'a fox' },
      { type: 'video_url', video_url: { url: 'https://a.test/a.mp4' }, role: 'reference_video' },
    ],
    video_reference_mode: 'strict',
  });
  const intended = await client.videos.create({
    intent: 'video_edit',
    prompt: 'snow',
    source_video_upload_id: upload.upload_id,
  });
  const edit = await client.videoEdits.create({
    model: 'svc-video-pro',
    prompt: 'snow',
    video: 'https://a.test/a.mp4',
    edit_mode: 'restyle',
  });
  const edited = await client.videoEdits.createAndWait({
    model: 'svc-video-mini',
    prompt: 'snow',
    source_video_upload_id: new Blob(['x']),
    reference_image_upload_ids: [new Uint8Array(1), uploaded.upload_id],
  });

  const job = await client.jobs.get(video.job.id);
  const output = await client.jobs.output(clip, { range: 'bytes=0-9' });
  const info = await client.jobs.outputInfo(clip);
  const awaited = await client.waitForJob(job, { pollIntervalMs: 5_000 });
  const urls: string[] = [];
  for await (const ended of client.waitForJobs([image.job, script.job, intended.job, edit.job])) {
    if (isCompleted(ended)) urls.push(ended.providerOutputUrl);
  }

  const event = await verifyWebhook(request, { secret: 'secret' });
  client.notify(await client.verifyWebhook(request));
  for await (const { progress } of client.watchJob(job)) void progress;
  for await (const { job: resumed, idempotencyKey } of client.resume(options)) void [resumed.id, idempotencyKey];
  for await (const { phase } of client.unfinishedCreates()) void phase;
  await client.markStored(clip);
  await client.uploads.delete(upload.upload_id);
  const speech = await client.request<{ url: string }>({ method: 'POST', path: '/v1/speech', body: { text: 'hello' } });
  const { data, requestId } = await client.withOptions({ preflight: false }).models.list().withResponse();
  const plain = await client.models.list().asResponse();
  return [
    models.models.length,
    integration,
    voices.voices,
    sheet.idempotencyKey,
    portrait.providerOutputUrl,
    characters.characters,
    character,
    picture.providerOutputUrl,
    edited.providerOutputExpiresAt,
    output.status,
    info.contentType,
    awaited.status,
    event.type,
    speech.url,
    data.models,
    requestId,
    plain.status,
    urls,
    isFinal(job),
    client.limits(),
    client.estimate({ call: 'videos', duration: 5 }).tokens,
    MODELS['svc-video-pro'].durations,
    modelCapabilities('svc-image-pro')?.aspectRatios,
  ];
}
