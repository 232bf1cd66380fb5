// Releases: rejected tags, npm tags, release notes, and the workflows' permissions.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { notesOf, npmTagOf, problemsOf, type Release } from '../scripts/release.js';
import { ROOT } from './support/build.js';

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const manifest = JSON.parse(read('package.json')) as Release['manifest'];
const addresses = {
  repository: { type: 'git', url: 'git+https://github.com/acme/gen-client.git' },
  homepage: 'https://github.com/acme/gen-client#readme',
  bugs: { url: 'https://github.com/acme/gen-client/issues' },
};

/** A valid release: this repository with its URLs set, on main, with its tag. */
const ready: Release = {
  manifest: { ...manifest, ...addresses },
  changelog: read('CHANGELOG.md'),
  versionSource: read('src/runtime/version.ts'),
  tag: `v${manifest.version}`,
  builtIn: 'acme/gen-client',
  isOnMain: true,
};

describe('a tag', () => {
  test('can be released if version, changelog, URLs, and branch match', () => {
    expect(problemsOf(ready)).toEqual([]);
  });

  test.each<[string, Partial<Release>, string]>([
    ['without a repository', { manifest: { ...manifest, ...addresses, repository: undefined } }, '`repository`'],
    ['without a homepage', { manifest: { ...manifest, ...addresses, homepage: undefined } }, '`homepage`'],
    ['with an empty URL for bugs', { manifest: { ...manifest, ...addresses, bugs: {} } }, '`bugs`'],
    ['built in another repository', { builtIn: 'someone/fork' }, 'built in someone/fork'],
    ['for another version', { tag: 'v9.9.9' }, 'v9.9.9 is not the version'],
    ['that is not on main', { isOnMain: false }, 'is not on main'],
    ['whose source has another version', { versionSource: "export const VERSION = '9.9.9';" }, 'version.ts'],
    ['without a section in the changelog', { changelog: '# Changelog' }, 'no heading'],
    ['whose section has no date', { changelog: `## [${manifest.version}]` }, 'no heading'],
    ['with an unreleased section', { changelog: `## [Unreleased]\n${ready.changelog}` }, '"Unreleased"'],
  ])('%s is rejected with an explanation', (_, change, words) => {
    const problems = problemsOf({ ...ready, ...change });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(words);
  });
});

describe("the workflow's step", () => {
  const folder = mkdtempSync(join(tmpdir(), 'gen-client-release-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const git = (...words: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...words], { cwd: folder, stdio: 'ignore' });
  const check = () =>
    spawnSync(process.execPath, [join(ROOT, 'scripts/release.ts'), 'check', ready.tag], {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, GITHUB_REPOSITORY: ready.builtIn },
    });
  const write = (file: string, text: string) => {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  };

  test("exits with 1 for an unreleased changelog section and for a commit that isn't on main", () => {
    write('package.json', JSON.stringify(ready.manifest));
    write('src/runtime/version.ts', ready.versionSource);
    write('CHANGELOG.md', `${ready.changelog}\n## [Unreleased]\n`);
    git('init', '--initial-branch=main');
    git('add', '.');
    git('commit', '--message=one');
    git('update-ref', 'refs/remotes/origin/main', 'HEAD');
    expect(check()).toMatchObject({ status: 1, stderr: expect.stringContaining('"Unreleased"') });
    write('CHANGELOG.md', ready.changelog);
    expect(check()).toMatchObject({ status: 0, stderr: '' });
    git('commit', '--all', '--message=two');
    expect(check()).toMatchObject({ status: 1, stderr: expect.stringContaining('is not on main') });
  });
});

test.each([
  ['0.2.0', undefined, 'latest'],
  ['0.2.1', '0.2.0', 'latest'],
  ['0.10.0', '0.9.3', 'latest'],
  ['0.2.1', '0.3.0', 'line-0.2'],
  ['1.4.9', '2.0.0', 'line-1.4'],
  ['0.3.0-beta.1', '0.2.0', 'next'],
])('%s is published as %s if the newest is %s', (version, latest, tag) => {
  expect(npmTagOf(version, latest)).toBe(tag);
});

test("a release's notes are its changelog section", () => {
  const changelog =
    '# Changelog\n\n## [0.2.1] - 2027-01-01\n\n- two\n\n### Fixed\n\n- three\n\n## [0.2.0] - 2026-11-22\n\n- one\n';
  expect(notesOf(changelog, '0.2.1')).toBe('- two\n\n### Fixed\n\n- three');
  expect(notesOf(changelog, '0.2.0')).toBe('- one');
});

describe('the workflows', () => {
  const folder = '.github/workflows/';
  const workflows = readdirSync(join(ROOT, folder)).map((file) => [file, read(folder + file)] as const);

  test.each(workflows)('%s pins each action by commit', (_, text) => {
    const actions = [...text.matchAll(/uses: (?!\.\/)(.+)/g)].map(([, action = '']) => action);
    expect(actions.length).toBeGreaterThan(0);
    expect(actions.filter((action) => !/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v[\d.]+$/.test(action))).toEqual([]);
  });

  test("the release publishes CI's tarball with its workflow's identity, and stores no token", () => {
    const release = read(`${folder}release.yml`);
    expect(release).toContain('id-token: write');
    expect(release).toContain('release.ts publish packed/*.tgz');
    expect(release).not.toMatch(/secrets\.|NPM_TOKEN|NODE_AUTH_TOKEN|_authToken/i);
    expect(read(`${folder}ci.yml`)).toContain('path: packed/*.tgz');
  });
});
