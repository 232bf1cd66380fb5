import { CommanderError } from 'commander';
import { GenError } from '../errors/index.js';

/** What the library says to a program, and what the command line says to a person. */
const IN_FLAGS: readonly (readonly [says: RegExp, instead: string])[] = [
  [/Pass overwrite: true to replace it/g, 'Pass --force to replace it'],
  [/Pass mimeType, for example "video\/mp4"/g, 'Upload it with: gen-client upload FILE --mime-type video/mp4'],
  [
    /Pass the right mimeType, or uploadType/g,
    'Upload it with: gen-client upload FILE --mime-type TYPE --type IMAGE|VIDEO|AUDIO',
  ],
  [/or raise timeoutMs/g, 'or pass a longer --timeout'],
  [/ \(timeoutMs( plus [^()]*)?\)/g, ''],
  [/Pass \{ apiKey \} to GenClient or set GEN_API_KEY/g, 'Set GEN_API_KEY'],
  [/ idempotencyKeyFrom\(\) makes one from your own ids\./g, ''],
  [/\bidempotencyKey\b/g, '--idempotency-key'],
  [/\bSet baseUrl to\b/g, 'Set GEN_BASE_URL, or --base-url, to'],
  [/\bbaseUrl\b/g, 'GEN_BASE_URL'],
  [/\bapiKey\b/g, 'GEN_API_KEY'],
];

/** A message of the library in the command line's own words. */
export function inFlags(message: string): string {
  return IN_FLAGS.reduce((text, [says, instead]) => text.replace(says, instead), message);
}

/** What an error says to a person. */
export function messageOf(error: unknown): string {
  return inFlags(error instanceof Error ? error.message : String(error));
}

/** An error for programs: its fields, with the message in the command line's words. */
export function errorDocument(error: unknown): Record<string, unknown> {
  const message = messageOf(error);
  if (error instanceof CommanderError) {
    // The parser shows its help in place of a message.
    const isHelp = error.code === 'commander.help';
    return { name: 'UsageError', message: isHelp ? 'A command is missing. See "gen-client --help".' : message };
  }
  return GenError.isInstance(error) ? { ...error.toJSON(), message } : { name: 'Error', message };
}
