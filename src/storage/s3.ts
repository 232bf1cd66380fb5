import { isUnsatisfiable } from '../rules/output.js';
import { bodyOfLength } from '../runtime/bytes.js';
import type { GetOptions, OutputDestination, OutputSource, PutObjectOptions, StoredObject } from './destination.js';
import { RepeatRequest } from './destination.js';
import { checkS3Options, type S3Options } from './s3-options.js';
import { S3Sender } from './s3-sender.js';

const METADATA = 'x-amz-meta-';

/**
 * One object in a store that speaks S3: AWS, Cloudflare R2, MinIO, Backblaze B2 and others. Requests are signed with
 * Signature Version 4. The file itself is not part of the signature, so use https outside of a private network.
 *
 * @example
 * s3({ region: 'eu-central-1', bucket: 'media', key: `videos/${job.id}.mp4`, credentials })
 */
export function s3(options: S3Options): OutputDestination & OutputSource {
  checkS3Options(options);
  const sender = new S3Sender(options);
  return {
    store: 's3',
    async head({ signal }) {
      const found = await sender.look(signal);
      return found && objectOf(found);
    },
    async put(body, { contentType, sizeBytes, metadata, signal, overwrite }: PutObjectOptions) {
      const headers = {
        ...options.headers,
        'content-type': contentType,
        ...Object.fromEntries(Object.entries(metadata).map(([name, value]) => [`${METADATA}${name}`, value])),
      };
      const content = await bodyOfLength(body, sizeBytes);
      return { etag: await sender.put(content, { headers, sizeBytes, signal, overwrite }) };
    },
    async get({ method, range, ifRange, signal }: GetOptions) {
      const headers = { ...(range && { range }), ...(range && ifRange && { 'if-range': ifRange }) };
      const ask = async () => {
        const response = await sender.ask({ method, headers, signal });
        if (response.ok || isUnsatisfiable(response.status)) return response;
        return sender.refuse(response);
      };
      return ask().catch((reason: unknown) => {
        if (reason instanceof RepeatRequest) return ask();
        throw reason;
      });
    },
  };
}

function objectOf({ headers }: Response): StoredObject {
  const metadata: Record<string, string> = {};
  for (const [name, value] of headers) {
    if (name.startsWith(METADATA)) metadata[name.slice(METADATA.length)] = value;
  }
  return {
    sizeBytes: Number(headers.get('content-length') ?? Number.NaN),
    contentType: headers.get('content-type') ?? undefined,
    etag: headers.get('etag') ?? undefined,
    metadata,
  };
}
