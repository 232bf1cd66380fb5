import type { OutputVersion } from '../../downloading/output.js';
import type { OutputReader } from '../../downloading/output-reader.js';
import { type OutputClient, outputReader, type SourceOptions } from '../../downloading/output-source.js';
import { DownloadError } from '../../errors/index.js';
import { createSha256 } from '../../runtime/sha256.js';

/** The file, open at its first byte. */
export interface OpenOutput {
  readonly reader: OutputReader;
  readonly version: OutputVersion;
  readonly sizeBytes: number;
}

/** Opens the file. Where the service does not tell its size, the file is read once to count its bytes. */
export async function openOutput(client: OutputClient, source: SourceOptions): Promise<OpenOutput> {
  let counted: number | undefined;
  for (;;) {
    const reader = outputReader(client, source);
    const version = await reader.read();
    if (version.type !== 'version') throw new TypeError('A reader begins with a version.');
    const sizeBytes = version.sizeBytes ?? counted;
    if (sizeBytes !== undefined) return { reader, version, sizeBytes };
    counted = await countBytes(reader);
  }
}

async function countBytes(reader: OutputReader): Promise<number> {
  let bytes = 0;
  for (;;) {
    const piece = await reader.read();
    if (piece.type === 'end') return bytes;
    bytes = piece.type === 'bytes' ? bytes + piece.bytes.length : 0;
  }
}

/** One version of a file on its way to a store. */
export interface CopyBody {
  /** Size of the file in bytes. */
  readonly sizeBytes: number;
  /** Exactly the announced bytes. It breaks before the last of them when the file cannot be read, or has changed. */
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** Whether all bytes were taken. */
  isWhole(): boolean;
  /** What the file itself failed with, or the version that it has changed to. */
  source(): { readonly failure: unknown } | { readonly version: OutputVersion } | undefined;
  /** Tells who is to act next: the source when bytes are asked for, the store when they are there. */
  onTurn(told: (whose: 'source' | 'store') => void): void;
  /** SHA-256 of all bytes, as 64 hex digits. */
  sha256(): string | Promise<string>;
}

/** What goes with the bytes. */
interface CopyBodyOptions {
  readonly jobId: string;
  readonly sizeBytes: number;
  /** Told how many bytes were handed over. */
  readonly handed: (bytes: number) => void;
}

/** The file as a body for one put. */
export function copyBody(reader: OutputReader, { jobId, sizeBytes, handed }: CopyBodyOptions): CopyBody {
  const digest = createSha256();
  let bytes = 0;
  let isWhole = false;
  let turn: (whose: 'source' | 'store') => void = () => {};
  let source: ReturnType<CopyBody['source']>;
  /** The next bytes; undefined at the end. Throws, and notes why, when the file does not go on. */
  const next = async (): Promise<Uint8Array<ArrayBuffer> | undefined> => {
    try {
      const piece = await reader.read();
      if (piece.type === 'bytes') return piece.bytes;
      if (piece.type === 'end') return undefined;
      source = { version: piece };
    } catch (failure) {
      source = { failure };
    }
    throw 'failure' in source ? source.failure : new Error('The file has changed.');
  };
  const ends = (): never => {
    const message = `The file of job ${jobId} has another size than the ${sizeBytes} bytes announced.`;
    source = { failure: new DownloadError(message, { jobId, code: 'file_changed' }) };
    throw source.failure;
  };
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        turn('source');
        const chunk = bytes < sizeBytes ? await next() : undefined;
        bytes += chunk?.length ?? 0;
        // What is longer than announced must be noticed before the last byte leaves.
        if (bytes > sizeBytes || (bytes === sizeBytes && (await next()) !== undefined)) ends();
        if (chunk === undefined && bytes < sizeBytes) ends();
        if (chunk !== undefined) {
          await digest.update(chunk);
          controller.enqueue(chunk);
          handed(bytes);
        }
        if (bytes === sizeBytes) {
          isWhole = true;
          controller.close();
        }
        turn('store');
      },
    },
    { highWaterMark: 0 },
  );
  const onTurn = (told: typeof turn) => {
    turn = told;
  };
  return { sizeBytes, stream, isWhole: () => isWhole, source: () => source, onTurn, sha256: () => digest.hex() };
}
