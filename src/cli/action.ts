import type { Command } from 'commander';
import type { GlobalFlags, Session } from './session.js';

/** Opens the session of one run. */
export type OpenSession = (flags: GlobalFlags) => Session;

/** What a command does, given its words and flags. */
export type CommandWork<Flags> = (session: Session, words: readonly string[], flags: Flags) => Promise<void>;

/** Gives a command its work. */
export function doing<Flags extends object>(command: Command, open: OpenSession, work: CommandWork<Flags>): Command {
  return command.action(async () => {
    const flags = command.optsWithGlobals<Flags & GlobalFlags>();
    await work(open(flags), command.args, flags);
  });
}

/** Adds examples to a command's help. */
export function withExamples(command: Command, examples: readonly string[]): Command {
  const lines = examples.map((example) => `  $ gen-client ${example}`).join('\n');
  return command.addHelpText('after', `\nExamples:\n${lines}\n`);
}
