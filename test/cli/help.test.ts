import { describe, expect, it } from 'vitest';
import { VERSION } from '../../src/runtime/version.js';
import { runCli } from './run-cli.js';

const COMMANDS = [
  ...['video', 'image', 'edit', 'batch', 'upload', 'job', 'jobs', 'resume', 'wait', 'download', 'models', 'doctor'],
  ...['sandbox', 'character', 'webhook', 'webhook listen'],
  ...['register', 'create', 'list', 'get', 'delete'].map((name) => `character ${name}`),
];

describe('--help', () => {
  it.each(COMMANDS)('of %s includes examples', async (name) => {
    const { code, stdout, stderr } = await runCli([...name.split(' '), '--help']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(`Usage: gen-client ${name}`);
    expect(stdout).toMatch(/Examples:\n {2}\$ gen-client \w/);
    const commands = [...stdout.matchAll(/^ {2}\$ gen-client (\S+)/gm)].map(([, command]) => command);
    for (const command of commands) expect(COMMANDS.map((known) => known.split(' ')[0])).toContain(command);
    expect(stdout).toContain('--json');
  });

  it('of batch mentions the encoding and the column for undocumented fields', async () => {
    const { stdout } = await runCli(['batch', '--help']);
    for (const word of ['UTF-8', 'extraBody']) expect(stdout).toContain(word);
  });

  it('documents the exit codes and the environment', async () => {
    const { stdout } = await runCli(['--help']);
    expect(stdout).toContain('0 done, 1 failed job, 2 usage, 3 account or key, 4 service or network, 130 interrupted');
    for (const name of ['GEN_API_KEY', 'GEN_BASE_URL', 'GEN_WEBHOOK_SECRET']) expect(stdout).toContain(name);
    for (const name of COMMANDS) expect(stdout).toMatch(new RegExp(`^ {2}${name.split(' ')[0]} `, 'm'));
  });
});

it('--version prints the version', async () => {
  expect(await runCli(['--version'])).toEqual({ code: 0, stdout: `${VERSION}\n`, stderr: '' });
});
