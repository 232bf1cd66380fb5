// The recipe examples/storage/azure-blob.ts with Azure's emulator and SDK.
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { azureBlob } from '../../examples/storage/azure-blob.js';
import { copyOutput } from '../../src/adapters/storage/index.js';
import { hash, LoopbackService } from '../files/loopback-service.js';
import { createClient, createMovie } from '../files/support.js';
import { freePort } from '../support/free-port.js';
import { PATIENCE_MS } from '../support/patience.js';
import { importPackage, packageProgram, whyNoStores } from './packages.js';

const MOVIE = createMovie(6_000_000);
const SHA256 = hash(MOVIE);

interface Blob {
  getProperties(): Promise<{
    contentLength: number;
    contentType: string;
    etag: string;
    metadata: Record<string, string>;
  }>;
  uploadStream(stream: Readable, buffer: number, parallel: number, options: object): Promise<{ etag: string }>;
  downloadToBuffer(): Promise<Buffer>;
}
interface Container {
  createIfNotExists(): Promise<unknown>;
  getBlockBlobClient(name: string): Blob;
}
interface Sdk {
  readonly BlobServiceClient: { fromConnectionString(text: string): { getContainerClient(name: string): Container } };
}

describe.skipIf(whyNoStores() !== undefined)('Azure Blob Storage', () => {
  let azurite: ChildProcess;
  let service: LoopbackService;
  let container: Container;
  let count = 0;
  let blob: Blob;

  beforeAll(async () => {
    const port = await freePort();
    const flags = ['--silent', '--inMemoryPersistence', '--skipApiVersionCheck', '--disableTelemetry'];
    const program = packageProgram('azurite/dist/src/blob/main.js');
    azurite = spawn(process.execPath, [program, '--blobPort', `${port}`, ...flags], { stdio: 'ignore' });
    const key = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';
    const { BlobServiceClient } = await importPackage<Sdk>('@azure/storage-blob');
    const connection = `DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=${key};BlobEndpoint=http://127.0.0.1:${port}/devstoreaccount1;`;
    container = BlobServiceClient.fromConnectionString(connection).getContainerClient('media');
    await vi.waitFor(() => container.createIfNotExists(), { timeout: PATIENCE_MS, interval: 200 });
    service = await LoopbackService.start();
  });
  afterAll(async () => {
    azurite.kill();
    await service?.close();
  });
  beforeEach(() => {
    count += 1;
    blob = container.getBlockBlobClient(`fox-${count}.mp4`);
    service.addOutput('job_1', { body: MOVIE });
  });
  const copy = (options = {}) => copyOutput(createClient(service), 'job_1', azureBlob(blob), options);

  it('stores the complete file despite interrupted connections', async () => {
    service.addOutput('job_1', { body: MOVIE, cutAfter: [3_000_000, 10] });
    const stored = await copy();
    expect(stored).toMatchObject({ sizeBytes: MOVIE.length, sha256: SHA256, existed: false, etag: expect.any(String) });
    expect((await blob.downloadToBuffer()).equals(MOVIE)).toBe(true);
    expect(await blob.getProperties()).toMatchObject({ contentType: 'video/mp4', metadata: { gen_job: 'job_1' } });
  });

  it("recognizes its blob, and rejects another job's", async () => {
    await copy();
    expect(await copy()).toMatchObject({ existed: true });
    service.addOutput('job_2', { body: MOVIE });
    const other = copyOutput(createClient(service), 'job_2', azureBlob(blob));
    await expect(other).rejects.toMatchObject({ name: 'StorageError', code: 'object_exists', store: 'azure' });
  });

  it('stores one object for three concurrent copies, and all resolve', async () => {
    const copies = await Promise.all([copy(), copy(), copy()]);
    expect(copies.filter(({ existed }) => !existed)).toHaveLength(1);
  });

  it('leaves no blob if the copy is aborted', async () => {
    service.addOutput('job_1', { body: MOVIE, cutAfter: [3_000_000, ...Array(20).fill(0)] });
    const abort = new AbortController();
    const copyPromise = copy({ signal: abort.signal });
    setTimeout(() => abort.abort('aborted'), 300);
    await expect(copyPromise).rejects.toBe('aborted');
    await expect(blob.getProperties()).rejects.toMatchObject({ statusCode: 404 });
  });
});
