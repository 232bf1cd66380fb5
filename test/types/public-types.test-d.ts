// Uses the exported types that no example, guide, or other test uses, as a user would annotate values. Compiled with all
// strict options.

import type {
  Character,
  CharacterList,
  CreateAndWaitOptions,
  CreatedUpload,
  GenClient,
  HttpAnswer,
  ModelList,
  Models,
  RequestOptions,
  RereadableSource,
  ResumedJob,
  UploadOptions,
  VideoEdits,
  VoiceList,
  WaitOptions,
} from 'gen-client';
import { toHttp } from 'gen-client';
import type { GenProviderOptions } from 'gen-client/ai-sdk';
import type { GenQueueOptions } from 'gen-client/bullmq';
import { createGenQueue } from 'gen-client/bullmq';
import type { FileStore, SavedOutput, SaveOutputOptions } from 'gen-client/node';
import { fileStore, saveOutput } from 'gen-client/node';
import type { ProxyOptions } from 'gen-client/proxy';
import { createGenProxy } from 'gen-client/proxy';
import type { RedisStore } from 'gen-client/redis';
import type {
  DeliveryRecord,
  LedgerEntry,
  LedgerView,
  Prices,
  RequestRecord,
  Sandbox,
  SandboxJob,
} from 'gen-client/sandbox';
import type { CopyOutputOptions, OutputHandler, OutputSource, StoredOutput } from 'gen-client/storage';
import { copyOutput } from 'gen-client/storage';
import type { ReceivedWebhook, SignedWebhook } from 'gen-client/webhooks';
import { signWebhook, verifyWebhook } from 'gen-client/webhooks';

declare const client: GenClient;
declare const sandbox: Sandbox;
declare const optional: { readonly signal?: AbortSignal; readonly timeoutMs?: number; readonly key?: string };

/** Options whose values may be missing. */
export const waitOptions: WaitOptions = { signal: optional.signal, timeoutMs: optional.timeoutMs };
export const requestOptions: RequestOptions = { signal: optional.signal, idempotencyKey: optional.key };
export const createOptions: CreateAndWaitOptions = { ...waitOptions, idempotencyKey: optional.key, recover: undefined };
export const uploadOptions: UploadOptions = { signal: optional.signal, filename: optional.key };
export const saveOptions: SaveOutputOptions = { signal: optional.signal, overwrite: undefined };
export const copyOptions: CopyOutputOptions = { signal: optional.signal, retries: optional.timeoutMs };
export const queueOptions: GenQueueOptions = { onError: undefined };
export const providerOptions: GenProviderOptions = { idempotencyKey: 'order-1' };
export const prices: Prices = ({ duration }) => duration;

export async function callOptions(): Promise<[Character, CreatedUpload, string | undefined]> {
  const job = client.images.createAndWait({ prompt: 'a fox' }, createOptions);
  const key: string | undefined = job.idempotencyKey;
  const upload = await client.uploads.create({
    file_name: 'a.png',
    mime_type: 'image/png',
    file_size: 1,
    upload_type: 'IMAGE',
  });
  const { upload_id } = await client.uploads.upload(new Blob(['x']), uploadOptions);
  await client.waitForJob(await job, waitOptions);
  return [await client.characters.register({ name: 'Ann', upload_id }, requestOptions), upload, key];
}

export async function lists(models: Models, edits: VideoEdits): Promise<(string | undefined)[]> {
  const modelList: ModelList = await models.list();
  const voices: VoiceList = await client.voices.list();
  const characters: CharacterList = await client.characters.list();
  const { job } = await edits.create({ model: 'svc-video-pro', prompt: 'snow', source_video_upload_id: 'upl_1' });
  const names = [modelList.models[0], voices.voices[0], characters.characters[0]].map((it) => String(it?.name));
  return [job.id, ...names];
}

export async function files(source: RereadableSource): Promise<(string | undefined)[]> {
  const store: FileStore = fileStore('store.sqlite');
  const saved: SavedOutput = await saveOutput(client, 'job_1', 'videos/', saveOptions);
  const copied: StoredOutput = await copyOutput(client, 'job_1', { put: async () => ({ etag: 'x' }) }, copyOptions);
  await client.uploads.upload(source);
  await store.close();
  return [saved.path, copied.etag];
}

export async function webhooks(received: ReceivedWebhook, job: { readonly id: string }): Promise<SignedWebhook> {
  const event = await verifyWebhook(received, { secret: 'whsec' });
  return signWebhook({ ...event, data: { job: { ...job, status: 'completed' } } }, { secret: 'whsec' });
}

export function resumedLabel({ label, idempotencyKey }: ResumedJob): string {
  return label ?? idempotencyKey;
}

export function responseOf(error: unknown): [HttpAnswer['status'], string] {
  const response: HttpAnswer = toHttp(error);
  return [response.status, response.message];
}

export function sandboxRecords(): (string | number | undefined)[] {
  const ledger: LedgerView = sandbox.ledger();
  const [entry]: readonly LedgerEntry[] = ledger.entries;
  const [request]: readonly RequestRecord[] = sandbox.requests;
  const [delivery]: readonly DeliveryRecord[] = sandbox.deliveries;
  const [job]: readonly SandboxJob[] = sandbox.jobs;
  return [entry?.at, request?.id, delivery?.id, job?.account];
}

type User = { readonly id: string };
export type PageProxyOptions = ProxyOptions<User, { prompt: string }, never, never, never>;
export const stores: readonly (keyof RedisStore)[] = ['read', 'write', 'close'];
export const source: OutputSource = { get: async ({ signal }) => fetch('https://cdn.example/file', { signal }) };
export const handler: OutputHandler = async () => new Response();
export const queue = () => createGenQueue({ host: '127.0.0.1' }, queueOptions);
export const proxyOf = createGenProxy;
