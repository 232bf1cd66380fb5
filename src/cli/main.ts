import { Command, CommanderError } from 'commander';
import { VERSION } from '../runtime/version.js';
import { didYouMean } from '../schemas/spelling.js';
import { type OpenSession, withExamples } from './command.js';
import { batchCommand } from './commands/batch.js';
import { editCommand, imageCommand, videoCommand } from './commands/create.js';
import { doctorCommand } from './commands/doctor.js';
import { downloadCommand, jobCommand, jobsCommand, resumeCommand, waitCommand } from './commands/jobs.js';
import { characterCommand, modelsCommand, uploadCommand } from './commands/resources.js';
import { sandboxCommand, webhookCommand } from './commands/servers.js';
import { EXIT, errorDocument, exitCodeOf, messageOf, nextStepOf, sentenceOf } from './errors.js';
import { type CliHost, createSession, type Session } from './session.js';
import { createTerminal, interruptSignal, type Terminal } from './terminal.js';

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
  GEN_API_KEY          the API key; keys are never accepted on the command line
  GEN_BASE_URL         base URL of the service
  GEN_WEBHOOK_SECRET   the signing secret, for "webhook"

Exit codes:
  ${EXIT.done} done, ${EXIT.failed} failed job, ${EXIT.usage} usage, ${EXIT.account} account or key, ${EXIT.service} service or network, ${EXIT.interrupted} interrupted
`;

export async function main(args: readonly string[], host: CliHost): Promise<number> {
  const terminal = createTerminal(host, { isJson: wantsJson(args) });
  const signal = host.signal ?? interruptSignal();
  let session: Session | undefined;
  const open: OpenSession = (flags) => {
    session = createSession(flags, { host, terminal, signal });
    return session;
  };
  try {
    await createProgram(open, host, terminal).parseAsync(args, { from: 'user' });
    terminal.end();
    return session?.exitCode ?? EXIT.done;
  } catch (error) {
    terminal.end();
    if (!signal.aborted || !session) return reportFailure({ terminal, env: host.env }, error, session);
    const message = sentenceOf(session.next ?? { text: 'Nothing was created.' });
    const interruption = { name: 'Interrupted', message, code: 'interrupted' };
    if (terminal.isJson) terminal.result({ ...session.outcome, error: interruption }, []);
    else terminal.note(`Interrupted. ${message}`);
    return EXIT.interrupted;
  }
}

function createProgram(open: OpenSession, { stdout, stderr }: CliHost, { isJson }: Terminal): Command {
  const program = new Command('gen-client')
    .description('Images, characters, and videos from the command line.')
    .version(VERSION)
    .option('--json', 'one JSON document on stdout, for programs ("batch" and "webhook listen": one per line)')
    .option('--base-url <url>', 'base URL of the service, instead of GEN_BASE_URL')
    .addHelpText('after', HELP);
  withExamples(program, ['video "a fox at dawn" --out fox.mp4', 'sandbox']);
  for (const create of COMMANDS) program.addCommand(create(open));
  for (const command of commandsOf(program)) {
    command
      .showSuggestionAfterError(false)
      .exitOverride(({ exitCode, code, message }) => {
        throw new CommanderError(exitCode, code, usageMessage(command, message));
      })
      .showHelpAfterError(`(${commandName(command)} --help shows all options)`)
      .configureHelp({ showGlobalOptions: true })
      .configureOutput({
        writeOut: (text) => void stdout.write(text),
        writeErr: (text) => void (isJson || stderr.write(text)),
        outputError: (text, write) => write(`${usageMessage(command, text.trimEnd())}\n`),
      });
  }
  return program;
}

/** Returns the parser's message. For an unknown option or command, it suggests the nearest one. */
function usageMessage(command: Command, text: string): string {
  const [, kind, name] = /^error: unknown (option|command) '([^']*)'$/.exec(text) ?? [];
  if (kind === undefined || name === undefined) return text.replace(/^error: /, 'Error: ');
  const names = kind === 'command' ? command.commands.map((subcommand) => subcommand.name()) : flagsOf(command);
  return `Error: Unknown ${kind} "${name}". ${didYouMean(name, names, { otherwise: '' })}`.trimEnd();
}

/** Returns the long flags of a command and its parents. */
function flagsOf({ options, parent }: Command): string[] {
  return [...options.flatMap(({ long }) => long ?? []), '--help', ...(parent ? flagsOf(parent) : [])];
}

function commandsOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap(commandsOf)];
}

function commandName(command: Command): string {
  return command.parent ? `${commandName(command.parent)} ${command.name()}` : command.name();
}

function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end === -1 ? undefined : end).includes('--json');
}

function reportFailure(
  { terminal, env }: { readonly terminal: Terminal; readonly env: CliHost['env'] },
  error: unknown,
  session: Session | undefined,
): number {
  const code = exitCodeOf(error);
  const next = nextStepOf(error, session?.next, env);
  if (terminal.isJson && code !== EXIT.done) {
    terminal.result({ ...session?.outcome, error: errorDocument(error), next: next?.command }, []);
  }
  // The parser has printed its errors.
  if (error instanceof CommanderError) return code;
  terminal.note(`Error: ${messageOf(error)}`);
  if (next) terminal.note(sentenceOf(next));
  return code;
}
