// The steps of a release: `node scripts/release.ts check v0.2.0`, `… notes`, `… publish FILE`. See CONTRIBUTING.md.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export interface Release {
  readonly manifest: Readonly<Record<string, unknown>> & { readonly version: string };
  readonly changelog: string;
  /** The text of src/runtime/version.ts. */
  readonly versionSource: string;
  readonly tag: string;
  /** The `owner/name` of the workflow's repository. */
  readonly buildRepository?: string | undefined;
  readonly isOnMain: boolean;
}

const URL_EXAMPLES = {
  repository: '{ "type": "git", "url": "git+https://github.com/OWNER/gen-client.git" }',
  homepage: '"https://github.com/OWNER/gen-client#readme"',
  bugs: '{ "url": "https://github.com/OWNER/gen-client/issues" }',
};

/** Returns the reasons why a tag can't be released, and how to fix them. */
export function problemsOf({ manifest, changelog, versionSource, tag, buildRepository, isOnMain }: Release): string[] {
  const { version, repository } = manifest;
  const missing = Object.entries(URL_EXAMPLES)
    .filter(([field]) => !JSON.stringify(manifest[field] ?? '').includes('://'))
    .map(([field, example]) => `package.json has no \`${field}\`. Set it to ${example}.`);
  const isElsewhere =
    buildRepository !== undefined &&
    missing.length === 0 &&
    !JSON.stringify(repository).includes(`github.com/${buildRepository}`);
  const headings = changelog.match(/^## .*$/gm) ?? [];
  const isDated = (heading: string) => heading.startsWith(`## [${version}] - `) && /\d{4}-\d{2}-\d{2}$/.test(heading);
  const checks: readonly (readonly [isWrong: boolean, problem: string])[] = [
    [isElsewhere, `npm rejects a package that is built in ${buildRepository}, because \`repository\` is another one.`],
    [!isOnMain, `${tag} is not on main. Merge its commit into main, and tag it there.`],
    [tag !== `v${version}`, `The tag ${tag} is not the version ${version} of package.json. Change one of them.`],
    [!versionSource.includes(`'${version}'`), `src/runtime/version.ts has another version. Set it to '${version}'.`],
    [
      !headings.some(isDated),
      `CHANGELOG.md has no heading "## [${version}] - YYYY-MM-DD". Add the date to the section of this version.`,
    ],
    [
      headings.some((heading) => /unreleased/i.test(heading)),
      'CHANGELOG.md has an "Unreleased" section. Replace its heading with the version and the date.',
    ],
  ];
  return [...missing, ...checks.flatMap(([isWrong, problem]) => (isWrong ? [problem] : []))];
}

/** Returns a version's section of the changelog, without its heading. */
export function notesOf(changelog: string, version: string): string {
  const [, section = ''] = changelog.split(`\n## [${version}]`);
  return section.slice(section.indexOf('\n')).split(/^## /m, 1).join('').trim();
}

/**
 * Returns a version's npm tag: `next` for a prerelease, `latest` for the newest version, and otherwise the tag of its release
 * line, so that `npm install` doesn't downgrade to it.
 */
export function npmTagOf(version: string, latest = '0.0.0'): string {
  if (version.includes('-')) return 'next';
  if (version.localeCompare(latest, 'en', { numeric: true }) > 0) return 'latest';
  return `line-${version.replace(/\.\d+$/, '')}`;
}

/** Publishes a tarball, unless the registry already has the same bytes. */
function publish(tarball: string): string {
  const packed = execFileSync('tar', ['-xzOf', tarball, 'package/package.json'], { encoding: 'utf8' });
  const { name, version } = JSON.parse(packed) as { name: string; version: string };
  const registered = view(name);
  if (registered === undefined) {
    throw new Error(
      `${name} is not on npm yet, and a trusted publisher can only be registered for an existing package. Publish this run's tarball manually, register the publisher (see CONTRIBUTING.md), and run this job again.`,
    );
  }
  if ([registered.versions].flat().includes(version)) {
    const publishedIntegrity = view(`${name}@${version}`)?.dist?.integrity;
    const tarballIntegrity = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`;
    if (publishedIntegrity === tarballIntegrity) return `${name}@${version} is published, and it is this tarball.`;
    throw new Error(`${name}@${version} is published with other bytes than this tarball. Raise the version.`);
  }
  const tag = npmTagOf(version, registered['dist-tags']?.latest);
  execFileSync('npm', ['publish', tarball, '--access', 'public', '--tag', tag], { stdio: 'inherit' });
  return `${name}@${version} is published as ${tag}.`;
}

/** The registry's data about a package or a version. */
interface RegistryData {
  readonly versions?: string | readonly string[];
  readonly 'dist-tags'?: { readonly latest?: string };
  readonly dist?: { readonly integrity?: string };
  readonly error?: { readonly code?: string; readonly summary?: string };
}

function view(specifier: string): RegistryData | undefined {
  // npm also writes errors to stdout.
  const { stdout } = spawnSync('npm', ['view', specifier, '--json'], { encoding: 'utf8' });
  const registered = JSON.parse(stdout || '{}') as RegistryData;
  if (registered.error?.code === 'E404') return undefined;
  if (registered.error !== undefined)
    throw new Error(`npm view ${specifier} failed: ${registered.error.summary ?? registered.error.code}`);
  return registered;
}

function run([step, argument = '']: readonly string[]): string {
  if (step === 'publish') return publish(argument);
  const changelog = readFileSync('CHANGELOG.md', 'utf8');
  const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Release['manifest'];
  if (step === 'notes') return notesOf(changelog, manifest.version);
  const problems = problemsOf({
    manifest,
    changelog,
    versionSource: readFileSync('src/runtime/version.ts', 'utf8'),
    tag: argument,
    buildRepository: process.env.GITHUB_REPOSITORY,
    isOnMain: spawnSync('git', ['merge-base', '--is-ancestor', 'HEAD', 'origin/main']).status === 0,
  });
  if (problems.length > 0) throw new Error(`${argument} cannot be released.\n${problems.join('\n')}`);
  return `${argument} can be released.`;
}

if (process.argv[1] === import.meta.filename) {
  try {
    process.stdout.write(`${run(process.argv.slice(2))}\n`);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
    process.exitCode = 1;
  }
}
