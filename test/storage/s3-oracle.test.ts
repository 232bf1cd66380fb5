// The AWS SDK is the oracle of the double: what AWS' own client sends must be taken, and what it reads must be what is there.
// Only so far is what the double says of our own requests worth something.
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { copyOutput, s3 } from '../../src/adapters/storage/index.js';
import { LoopbackService } from '../files/loopback-service.js';
import { makeClient } from '../files/make-client.js';
import { heavy, whyNoStores } from './heavy.js';
import { S3Double } from './s3-double.js';

type Command = new (input: object) => object;
interface Answer {
  readonly ContentLength?: number;
  readonly ContentType?: string;
  readonly ContentRange?: string;
  readonly ETag?: string;
  readonly Metadata?: Record<string, string>;
  readonly Body?: { transformToByteArray(): Promise<Uint8Array> };
}
interface Sdk {
  readonly S3Client: new (options: object) => { send(command: object): Promise<Answer>; destroy(): void };
  readonly PutObjectCommand: Command;
  readonly GetObjectCommand: Command;
  readonly HeadObjectCommand: Command;
}
interface Refused {
  readonly name: string;
  readonly message: string;
  readonly $metadata: { readonly httpStatusCode: number };
}

const MOVIE = new Uint8Array(300_000).map((_, at) => (at * 13) % 249);

describe.skipIf(whyNoStores() !== undefined)('the double and the AWS SDK', () => {
  let store: S3Double;
  let sdk: Sdk;
  beforeEach(async () => {
    store = await S3Double.start();
    sdk = await heavy<Sdk>('@aws-sdk/client-s3');
  });
  afterEach(() => store.close());

  const client = (more: object = {}) =>
    new sdk.S3Client({
      endpoint: store.endpoint,
      region: store.region,
      credentials: store.account,
      forcePathStyle: true,
      maxAttempts: 1,
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      ...more,
    });
  const at = (key: string) => ({ Bucket: store.bucket, Key: key });
  const refused = (work: Promise<unknown>) =>
    work.then(
      () => expect.fail('it was not refused'),
      (reason: unknown) => reason as Refused,
    );

  it('the SDK puts, and reads back by HEAD, GET and range what it has put', async () => {
    const put = new sdk.PutObjectCommand({
      ...at('a b+c/ü (1)!.mp4'),
      Body: MOVIE,
      ContentType: 'video/mp4',
      Metadata: { 'gen-job': 'job_1', other: 'two words' },
    });
    const { ETag } = await client().send(put);
    expect(ETag).toBe(`"${createHash('md5').update(MOVIE).digest('hex')}"`);
    const head = await client().send(new sdk.HeadObjectCommand(at('a b+c/ü (1)!.mp4')));
    expect(head).toMatchObject({ ContentLength: MOVIE.length, ContentType: 'video/mp4', ETag });
    expect(head.Metadata).toEqual({ 'gen-job': 'job_1', other: 'two words' });
    const get = await client().send(new sdk.GetObjectCommand({ ...at('a b+c/ü (1)!.mp4'), Range: 'bytes=10-19' }));
    expect(get.ContentRange).toBe(`bytes 10-19/${MOVIE.length}`);
    expect(await get.Body?.transformToByteArray()).toEqual(MOVIE.slice(10, 20));
  });

  it('the SDK reads what copyOutput has stored, under names that need encoding', async () => {
    const service = await LoopbackService.start();
    try {
      service.addOutput('job_1', { body: MOVIE });
      for (const key of ['fox.mp4', "it's (1)!*.mp4", 'ünï/日本 +&=?#%.mp4', 'a//b.mp4']) {
        const stored = await copyOutput(makeClient(service), 'job_1', s3(store.at(key)));
        const head = await client().send(new sdk.HeadObjectCommand(at(key)));
        expect(head).toMatchObject({ ContentLength: MOVIE.length, ContentType: 'video/mp4', ETag: stored.etag });
        expect(head.Metadata).toEqual({ 'gen-job': 'job_1' });
        const get = await client().send(new sdk.GetObjectCommand(at(key)));
        expect(Buffer.from((await get.Body?.transformToByteArray()) ?? []).equals(MOVIE)).toBe(true);
      }
    } finally {
      await service.close();
    }
  });

  it('copyOutput knows what the SDK has stored', async () => {
    const service = await LoopbackService.start();
    try {
      service.addOutput('job_1', { body: MOVIE });
      const Metadata = { 'gen-job': 'job_1' };
      await client().send(new sdk.PutObjectCommand({ ...at('x y.mp4'), Body: MOVIE, Metadata }));
      expect(await copyOutput(makeClient(service), 'job_1', s3(store.at('x y.mp4')))).toMatchObject({ existed: true });
    } finally {
      await service.close();
    }
  });

  it('the SDK is let in with a session token, and out with an old one', async () => {
    store.account = { ...store.account, sessionToken: 'now' };
    await client().send(new sdk.PutObjectCommand({ ...at('x'), Body: MOVIE }));
    const credentials = { ...store.account, sessionToken: 'old' };
    const old = await refused(client({ credentials }).send(new sdk.PutObjectCommand({ ...at('x'), Body: MOVIE })));
    expect(old).toMatchObject({ name: 'ExpiredToken', $metadata: { httpStatusCode: 400 } });
  });

  it.each<[string, object, string, number]>([
    [
      'a wrong secret',
      { credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'no' } },
      'SignatureDoesNotMatch',
      403,
    ],
    ['an unknown key', { credentials: { accessKeyId: 'AKIDOTHER', secretAccessKey: 'no' } }, 'InvalidAccessKeyId', 403],
    ['a wrong region', { region: 'us-west-2' }, 'AuthorizationHeaderMalformed', 400],
    ['a clock that is off', { systemClockOffset: 3_600_000 }, 'RequestTimeTooSkewed', 403],
  ])('the SDK understands the refusal of %s', async (_, options, name, httpStatusCode) => {
    const error = await refused(client(options).send(new sdk.PutObjectCommand({ ...at('x'), Body: MOVIE })));
    expect(error).toMatchObject({ name, $metadata: { httpStatusCode } });
  });

  it('the SDK understands a precondition, a busy store, a missing key and a missing bucket', async () => {
    await client().send(new sdk.PutObjectCommand({ ...at('x'), Body: MOVIE, IfNoneMatch: '*' }));
    const again = new sdk.PutObjectCommand({ ...at('x'), Body: MOVIE, IfNoneMatch: '*' });
    expect(await refused(client().send(again))).toMatchObject({
      name: 'PreconditionFailed',
      $metadata: { httpStatusCode: 412 },
    });
    store.faults.push({ method: 'GET', status: 503, code: 'SlowDown' });
    expect(await refused(client().send(new sdk.GetObjectCommand(at('x'))))).toMatchObject({ name: 'SlowDown' });
    expect(await refused(client().send(new sdk.GetObjectCommand(at('none'))))).toMatchObject({ name: 'NoSuchKey' });
    expect(await refused(client().send(new sdk.HeadObjectCommand(at('none'))))).toMatchObject({ name: 'NotFound' });
    const elsewhere = new sdk.GetObjectCommand({ Bucket: 'none', Key: 'x' });
    expect(await refused(client().send(elsewhere))).toMatchObject({ name: 'NoSuchBucket' });
  });

  it('a body that is not what was signed is refused', async () => {
    const put = new sdk.PutObjectCommand({ ...at('x'), Body: MOVIE });
    const tampered = client();
    const { middlewareStack } = tampered as unknown as { middlewareStack: { add(step: unknown, where: object): void } };
    const change =
      (next: (args: { request: { body: unknown } }) => unknown) => (args: { request: { body: unknown } }) => {
        args.request.body = OTHER;
        return next(args);
      };
    middlewareStack.add(change, { step: 'finalizeRequest', priority: 'low' });
    expect(await refused(tampered.send(put))).toMatchObject({ name: 'XAmzContentSHA256Mismatch' });
    expect(store.objects.size).toBe(0);
  });
});

const OTHER = new Uint8Array(MOVIE.length);
