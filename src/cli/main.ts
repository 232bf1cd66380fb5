import { Command, CommanderError } from 'commander';
import { JobError } from '../errors/index.js';
import { VERSION } from '../version.js';
import { type OpenSession, withExamples } from './action.js';
import { adviceFor } from './advice.js';
import { batchCommand } from './commands/batch.js';
import { characterCommand } from './commands/character.js';
import { doctorCommand } from './commands/doctor.js';
import { editCommand } from './commands/edit.js';
import { downloadCommand, uploadCommand } from './commands/files.js';
import { imageCommand } from './commands/image.js';
import { jobCommand, waitCommand } from './commands/jobs.js';
import { jobsCommand, resumeCommand } from './commands/journal.js';
import { modelsCommand } from './commands/models.js';
import { sandboxCommand } from './commands/sandbox.js';
import { videoCommand } from './commands/video.js';
import { webhookCommand } from './commands/webhook.js';
import { EXIT, exitCodeOf } from './exit-codes.js';
import type { Machine } from './machine.js';
import { createSession, type Session } from './session.js';
import { createTerminal, interruptSignal, type Terminal } from './terminal.js';
import { errorDocument, messageOf } from './wording.js';

const COMMANDS = [
  videoCommand,
  imageCommand,
  editCommand,
  characterCommand,
  batchCommand,
  uploadCommand,
  jobCommand,
  waitCommand,
  downloadCommand,
  jobsCommand,
  resumeCommand,
  modelsCommand,
  webhookCommand,
  doctorCommand,
  sandboxCommand,
];

const HELP = `
Environment:
  GEN_API_KEY          the API key; keys are never taken from the command line
  GEN_BASE_URL         where the service is
  GEN_WEBHOOK_SECRET   the signing secret, for "webhook"

Exit codes:
  ${EXIT.done} done, ${EXIT.failed} failed job, ${EXIT.usage} usage, ${EXIT.account} account or key, ${EXIT.service} service or network, ${EXIT.interrupted} interrupted
`;

/** Runs one command line and gives the exit code. */
export async function main(words: readonly string[], machine: Machine): Promise<number> {
  const terminal = createTerminal(machine, { isJson: asksForJson(words) });
  const signal = machine.signal ?? interruptSignal();
  let session: Session | undefined;
  const open: OpenSession = (flags) => {
    session = createSession(flags, { machine, terminal, signal });
    return session;
  };
  try {
    await createProgram(open, machine, terminal).parseAsync(words, { from: 'user' });
    return session?.exitCode ?? EXIT.done;
  } catch (error) {
    if (signal.aborted && session) return interrupted(terminal, session);
    return reportFailure(terminal, error, session);
  }
}

function createProgram(open: OpenSession, { stdout, stderr }: Machine, { isJson }: Terminal): Command {
  const program = new Command('gen-client')
    .description('Images, characters and videos from the command line.')
    .version(VERSION)
    .option('--json', 'one JSON document on stdout, for programs ("batch" and "webhook listen": one a line)')
    .option('--base-url <url>', 'where the service is, instead of GEN_BASE_URL')
    .addHelpText('after', HELP);
  withExamples(program, ['video "a fox at dawn" --out fox.mp4', 'sandbox']);
  for (const make of COMMANDS) program.addCommand(make(open));
  for (const command of allOf(program)) {
    command
      .exitOverride()
      .showHelpAfterError(`(${commandName(command)} --help says more)`)
      .configureHelp({ showGlobalOptions: true })
      .configureOutput({
        writeOut: (text) => void stdout.write(text),
        writeErr: (text) => void (isJson || stderr.write(text)),
      });
  }
  return program;
}

function allOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allOf)];
}

function commandName(command: Command): string {
  return command.parent ? `${commandName(command.parent)} ${command.name()}` : command.name();
}

function asksForJson(words: readonly string[]): boolean {
  const end = words.indexOf('--');
  return words.slice(0, end === -1 ? undefined : end).includes('--json');
}

function interrupted(terminal: Terminal, { hint, outcome }: Session): number {
  if (terminal.isJson) terminal.result({ ...outcome, error: { name: 'Interrupted', message: hint } }, []);
  else terminal.note(`Interrupted. ${hint}`);
  return EXIT.interrupted;
}

function reportFailure(terminal: Terminal, error: unknown, session: Session | undefined): number {
  const code = exitCodeOf(error);
  if (terminal.isJson && code !== EXIT.done) {
    const next = JobError.isInstance(error) ? undefined : session?.next?.command;
    terminal.result({ ...session?.outcome, error: errorDocument(error), next }, []);
  }
  // The parser has said its errors itself.
  if (error instanceof CommanderError) return code;
  terminal.note(`Error: ${messageOf(error)}`);
  const advice = adviceFor(error, session);
  if (advice !== undefined) terminal.note(advice);
  return code;
}
