import { type FileHandle, open } from 'node:fs/promises';

/** A file that is there already, compared piece by piece with the one that is fetched. */
export class SameFile {
  readonly #file: FileHandle;
  #position = 0;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Opens the file that is at a path. */
  static async open(path: string): Promise<SameFile> {
    return new SameFile(await open(path, 'r'));
  }

  /** How many bytes were compared. */
  get sizeBytes(): number {
    return this.#position;
  }

  /** Whether the file goes on with these bytes. */
  async goesOnWith(bytes: Uint8Array): Promise<boolean> {
    const own = Buffer.allocUnsafe(bytes.length);
    let length = 0;
    for (let read = 1; read > 0 && length < own.length; length += read) {
      const position = this.#position + length;
      read = (await this.#file.read(own, length, own.length - length, position)).bytesRead;
    }
    this.#position += length;
    return own.equals(bytes);
  }

  /** Releases the file. */
  async close(): Promise<void> {
    await this.#file.close();
  }
}
