// Base URLs, IDs, and redirects that users, consoles, and proxies produce. Each row: source, input, expected value.
import { describe, expect, it } from 'vitest';
import { GenClient, GenError } from '../../../src/index.js';
import { freshKey, json, never, rejection, stubbed } from '../../transport/support.js';

/** Returns the URL of a job's poll. */
async function pollUrl(baseUrl: string | URL, id = 'job_1'): Promise<string> {
  let url = '';
  const fetch = async (input: RequestInfo | URL) => {
    url = input instanceof Request ? input.url : String(input);
    return json({ success: true, data: { job: { id, status: 'queued' } } });
  };
  await new GenClient({ apiKey: freshKey(), baseUrl, fetch }).jobs.get(id);
  return url;
}

describe('a base URL', () => {
  it.each<[source: string, baseUrl: string, url: string]>([
    ['openai-node: an origin', 'https://gen.test', 'https://gen.test/v1/jobs/job_1'],
    ['openai-node: a trailing slash', 'https://gen.test/', 'https://gen.test/v1/jobs/job_1'],
    ['ky: a path prefix', 'https://gen.test/api', 'https://gen.test/api/v1/jobs/job_1'],
    ['ky: a path prefix with a slash', 'https://gen.test/api/', 'https://gen.test/api/v1/jobs/job_1'],
    ['two trailing slashes', 'https://gen.test/api//', 'https://gen.test/api/v1/jobs/job_1'],
    ['surrounding spaces', ' https://gen.test/api ', 'https://gen.test/api/v1/jobs/job_1'],
    ['a segment that starts like the version', 'https://gen.test/v10', 'https://gen.test/v10/v1/jobs/job_1'],
    ['a prefix that contains the version', 'https://gen.test/v1/api', 'https://gen.test/v1/api/v1/jobs/job_1'],
    ['a gateway: several segments', 'https://gen.test/a/b/c/', 'https://gen.test/a/b/c/v1/jobs/job_1'],
    ['a gateway: an encoded segment stays encoded', 'https://gen.test/a%2Fb', 'https://gen.test/a%2Fb/v1/jobs/job_1'],
    ['a container: a host name and a port', 'http://gen:8080', 'http://gen:8080/v1/jobs/job_1'],
    ['IPv6', 'http://[::1]:4010', 'http://[::1]:4010/v1/jobs/job_1'],
    ['the default port', 'https://gen.test:443', 'https://gen.test/v1/jobs/job_1'],
    ['a host in upper case', 'https://GEN.TEST', 'https://gen.test/v1/jobs/job_1'],
    ['an international host', 'https://bücher.test', 'https://xn--bcher-kva.test/v1/jobs/job_1'],
  ])('is followed by the path, both as a string and as a URL: %s', async (_source, baseUrl, url) => {
    expect([await pollUrl(baseUrl), await pollUrl(new URL(baseUrl))]).toEqual([url, url]);
  });

  it.each<[source: string, baseUrl: string]>([
    ['openai-node: without a scheme', 'gen.test'],
    ['a port without a scheme', 'localhost:4010'],
    ['stripe-node: another scheme', 'ftp://gen.test'],
    ['a relative path', '/api'],
    ['the version, which every path includes', 'https://gen.test/v1'],
    ['the version after a prefix', 'https://gen.test/api/v1/'],
    ['a query', 'https://gen.test?region=eu'],
    ['a fragment', 'https://gen.test/#v1'],
    ['a user and a password, which fetch rejects', 'https://user:secret@gen.test'],
    ['an empty string', ''],
    ['white space', '  '],
    ['an unexpanded shell variable', '$GEN_BASE_URL'],
    ['quotes from a .env file', '"https://gen.test"'],
  ])('is rejected with an example: %s', (_source, baseUrl) => {
    const create = () => new GenClient({ apiKey: freshKey(), baseUrl });
    expect(create).toThrow(GenError);
    expect(create).toThrow(/^baseUrl must .+https:\/\/host/);
    expect(create).not.toThrow(/secret/);
  });
});

describe('an ID in a path', () => {
  it.each<[source: string, id: string, segment: string]>([
    ['openai-node: a slash', 'a/b', 'a%2Fb'],
    ['openai-node: dots and a slash', '../keys', '..%2Fkeys'],
    ['openai-node: an encoded slash', 'a%2Fb', 'a%252Fb'],
    ['stripe-node: a space', 'a b', 'a%20b'],
    ['a question mark', 'a?b=c', 'a%3Fb%3Dc'],
    ['a number sign', 'a#b', 'a%23b'],
    ['a backslash', 'a\\b', 'a%5Cb'],
    ['a line break', 'a\nb', 'a%0Ab'],
    ['a null character', 'a\0b', 'a%00b'],
    ['letters beyond ASCII', 'füchse', 'f%C3%BCchse'],
    ['an emoji', '🦊', '%F0%9F%A6%8A'],
    ['three dots, a valid name', '...', '...'],
  ])('remains a single segment: %s', async (_source, id, segment) => {
    expect(await pollUrl('https://gen.test', id)).toBe(`https://gen.test/v1/jobs/${segment}`);
  });

  it.each<[source: string, id: unknown]>([
    ['openai-node: a dot', '.'],
    ['openai-node: two dots', '..'],
    ['openai-node: an empty string', ''],
    ['half of a surrogate pair', '\ud83e'],
    ['undefined from a missing row', undefined],
    ['null from a database', null],
    ['a number', 17],
    ['a forgotten await', Promise.resolve('job_1')],
  ])('is rejected before anything is sent: %s', async (_source, id) => {
    const { client, requests } = stubbed(never);
    const error = await rejection(client.jobs.get(id as string));
    expect(error).toBeInstanceOf(GenError);
    expect(String(error)).toMatch(/\bID\b/);
    expect(requests).toEqual([]);
  });
});

describe('a redirected create', () => {
  it.each<[source: string, status: number, location: string]>([
    ['fetch: http to https', 301, 'https://gen.test/v1/videos'],
    ["fetch: a proxy's login page", 302, 'https://login.test/?next=/v1/videos'],
    ['fetch: a POST that becomes a GET', 303, '/v1/jobs'],
    ['fetch: the same method elsewhere', 307, 'https://other.test/v1/videos'],
    ['a moved API', 308, '/v2/videos'],
    ['another scheme', 302, 'gen://videos'],
  ])('is rejected and not sent a second time: %s (%i)', async (_source, status, location) => {
    const modes: string[] = [];
    const { client, requests } = stubbed((_received, { redirect }) => {
      modes.push(redirect);
      return new Response(null, { status, headers: { location } });
    });
    const error = await rejection(client.videos.create({ prompt: 'a fox' }));
    expect(error).toMatchObject({ name: 'APIError', status, recovery: 'change_request' });
    expect(String(error)).toMatch(/redirect/i);
    expect([requests.length, modes]).toEqual([1, ['manual']]);
  });
});
