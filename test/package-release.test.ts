// Releases: rejected tags, npm tags, release notes, and the workflows' security.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { notesOf, npmTagOf, problemsOf, type Release } from '../scripts/release.js';
import { ROOT } from './support/build.js';

const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const manifest = JSON.parse(read('package.json')) as Release['manifest'];
const urls = {
  repository: { type: 'git', url: 'git+https://github.com/acme/gen-client.git' },
  homepage: 'https://github.com/acme/gen-client#readme',
  bugs: { url: 'https://github.com/acme/gen-client/issues' },
};

/** A valid release: this repository with its URLs set, on main, with its tag. */
const validRelease: Release = {
  manifest: { ...manifest, ...urls },
  changelog: read('CHANGELOG.md'),
  versionSource: read('src/runtime/version.ts'),
  tag: `v${manifest.version}`,
  buildRepository: 'acme/gen-client',
  isOnMain: true,
};

describe('a tag', () => {
  test('can be released if version, changelog, URLs, and branch match', () => {
    expect(problemsOf(validRelease)).toEqual([]);
  });

  test.each<[string, Partial<Release>, string]>([
    ['without a repository', { manifest: { ...manifest, ...urls, repository: undefined } }, '`repository`'],
    ['without a homepage', { manifest: { ...manifest, ...urls, homepage: undefined } }, '`homepage`'],
    ['without a URL for bugs', { manifest: { ...manifest, ...urls, bugs: {} } }, '`bugs`'],
    ['built in another repository', { buildRepository: 'someone/fork' }, 'built in someone/fork'],
    ['for another version', { tag: 'v9.9.9' }, 'v9.9.9 is not the version'],
    ['that is not on main', { isOnMain: false }, 'is not on main'],
    ['whose source has another version', { versionSource: "export const VERSION = '9.9.9';" }, 'version.ts'],
    ['without a section in the changelog', { changelog: '# Changelog' }, 'no heading'],
    ['whose section has no date', { changelog: `## [${manifest.version}]` }, 'no heading'],
    ['with an unreleased section', { changelog: `## [Unreleased]\n${validRelease.changelog}` }, '"Unreleased"'],
  ])('%s is rejected with an explanation', (_, change, expected) => {
    const problems = problemsOf({ ...validRelease, ...change });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(expected);
  });
});

describe('release.ts check', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gen-client-release-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...args], { cwd: folder, stdio: 'ignore' });
  const check = () =>
    spawnSync(process.execPath, [join(ROOT, 'scripts/release.ts'), 'check', validRelease.tag], {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, GITHUB_REPOSITORY: validRelease.buildRepository },
    });
  const write = (file: string, text: string) => {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  };

  test("exits with 1 for an unreleased changelog section and for a commit that isn't on main", () => {
    write('package.json', JSON.stringify(validRelease.manifest));
    write('src/runtime/version.ts', validRelease.versionSource);
    write('CHANGELOG.md', `${validRelease.changelog}\n## [Unreleased]\n`);
    git('init', '--initial-branch=main');
    git('add', '.');
    git('commit', '--message=one');
    git('update-ref', 'refs/remotes/origin/main', 'HEAD');
    expect(check()).toMatchObject({ status: 1, stderr: expect.stringContaining('"Unreleased"') });
    write('CHANGELOG.md', validRelease.changelog);
    expect(check()).toMatchObject({ status: 0, stderr: '' });
    git('commit', '--all', '--message=two');
    expect(check()).toMatchObject({ status: 1, stderr: expect.stringContaining('is not on main') });
  });
});

test.each([
  ['0.2.0', 'latest', undefined],
  ['0.2.1', 'latest', '0.2.0'],
  ['0.10.0', 'latest', '0.9.3'],
  ['0.2.1', 'line-0.2', '0.3.0'],
  ['1.4.9', 'line-1.4', '2.0.0'],
  ['0.3.0-beta.1', 'next', '0.2.0'],
])('%s is published as %s if the latest version is %s', (version, tag, latest) => {
  expect(npmTagOf(version, latest)).toBe(tag);
});

test("a release's notes are its changelog section", () => {
  const changelog =
    '# Changelog\n\n## [0.2.1] - 2027-01-01\n\n- two\n\n### Fixed\n\n- three\n\n## [0.2.0] - 2026-11-22\n\n- one\n';
  expect(notesOf(changelog, '0.2.1')).toBe('- two\n\n### Fixed\n\n- three');
  expect(notesOf(changelog, '0.2.0')).toBe('- one');
});

describe('workflow', () => {
  const folder = '.github/workflows/';
  const workflows = readdirSync(join(ROOT, folder)).map((file) => [file, read(folder + file)] as const);

  test.each(workflows)('%s pins each action by commit', (_, text) => {
    const actions = [...text.matchAll(/uses: (?!\.\/)(.+)/g)].map(([, action = '']) => action);
    expect(actions.length).toBeGreaterThan(0);
    expect(actions.filter((action) => !/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v[\d.]+$/.test(action))).toEqual([]);
  });

  test("release.yml publishes CI's tarball through OIDC, and stores no token", () => {
    const release = read(`${folder}release.yml`);
    expect(release).toContain('id-token: write');
    expect(release).toContain('release.ts publish packed/*.tgz');
    expect(release).not.toMatch(/secrets\.|NPM_TOKEN|NODE_AUTH_TOKEN|_authToken/i);
    expect(read(`${folder}ci.yml`)).toContain('path: packed/*.tgz');
  });
});
