import type { OutputVersion } from '../../downloading/output.js';
import type { OutputReader } from '../../downloading/output-reader.js';
import { createSha256 } from '../../runtime/sha256.js';

/** The file, open at its first byte. */
export interface OpenOutput {
  readonly reader: OutputReader;
  readonly version: OutputVersion;
  readonly sizeBytes: number;
}

/** Opens the file. Where the service does not tell its size, the file is read once to count its bytes. */
export async function openOutput(reader: OutputReader): Promise<OpenOutput> {
  const opened = await reader.fromStart(async (version) => {
    const { sizeBytes = await countBytes(reader) } = version;
    return { reader, version, sizeBytes };
  });
  if (opened.version.sizeBytes !== undefined) return opened;
  const version = await reader.open(opened.sizeBytes);
  return { ...opened, version, sizeBytes: version.sizeBytes ?? opened.sizeBytes };
}

async function countBytes(reader: OutputReader): Promise<number> {
  let count = 0;
  for (let bytes = await reader.read(); bytes; bytes = await reader.read()) count += bytes.length;
  return count;
}

/** One version of a file on its way to a store. */
export interface CopyBody {
  /** Size of the file in bytes. */
  readonly sizeBytes: number;
  /** Exactly the announced bytes. It breaks before the last of them when the file cannot be read, or has changed. */
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** Whether all bytes were taken. */
  isWhole(): boolean;
  /** What the file itself failed with. */
  failure(): { readonly reason: unknown } | undefined;
  /** Tells who is to act next: the source when bytes are asked for, the store when they are there. */
  onTurn(told: (whose: 'source' | 'store') => void): void;
  /** SHA-256 of all bytes, as 64 hex digits. */
  sha256(): string | Promise<string>;
}

/** The file as a body for one put. `handed` is told how many bytes were handed over. */
export function copyBody({ reader, sizeBytes }: OpenOutput, handed: (bytes: number) => void): CopyBody {
  const digest = createSha256();
  let count = 0;
  let isWhole = false;
  let turn: (whose: 'source' | 'store') => void = () => {};
  let failure: { readonly reason: unknown } | undefined;
  const next = async () => {
    try {
      return await reader.read();
    } catch (reason) {
      failure = { reason };
      throw reason;
    }
  };
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        turn('source');
        const bytes = await next();
        if (bytes !== undefined) {
          count += bytes.length;
          // A file that is longer than announced is noticed before its last byte leaves.
          if (count === sizeBytes) await next();
          await digest.update(bytes);
          controller.enqueue(bytes);
          handed(count);
        }
        isWhole = count === sizeBytes;
        if (isWhole) controller.close();
        turn('store');
      },
    },
    { highWaterMark: 0 },
  );
  const onTurn = (told: typeof turn) => {
    turn = told;
  };
  return { sizeBytes, stream, isWhole: () => isWhole, failure: () => failure, onTurn, sha256: () => digest.hex() };
}
