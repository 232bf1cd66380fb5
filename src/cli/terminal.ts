import type { Writable } from 'node:stream';
import { plainJson, plainText } from './plain-text.js';
import { createProgress, type Progress } from './progress.js';

/** Where a command writes: results on stdout, everything else on stderr. */
export interface Terminal {
  /** Whether a program reads: one JSON document on stdout, and nothing on stderr. */
  readonly isJson: boolean;
  /** The outcome: as JSON, or as lines for a reader. */
  result(value: unknown, lines: readonly string[]): void;
  /** Something worth knowing on the way; not for programs. */
  note(text: string): void;
  /** A bar on a terminal, plain lines in a pipe, nothing for programs. */
  progress(label: string): Progress;
}

/** The streams to write to. */
export interface Streams {
  readonly stdout: Writable;
  readonly stderr: Writable & { readonly isTTY?: boolean };
}

/** A terminal over the process's streams. */
export function createTerminal({ stdout, stderr }: Streams, { isJson }: { isJson: boolean }): Terminal {
  const note = (text: string) => {
    if (!isJson) stderr.write(`${plainText(text)}\n`);
  };
  return {
    isJson,
    result(value, lines) {
      stdout.write(isJson ? `${plainJson(value)}\n` : lines.map((line) => `${plainText(line)}\n`).join(''));
    },
    note,
    progress: (label) => createProgress(plainText(label), { stream: stderr, isShown: !isJson, note }),
  };
}
