import { quote } from '../../schemas/show.js';

/** An HTTP request to be repeated in a shell. */
export interface CurlCall {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | null | undefined;
  /** A file that has the body. */
  readonly bodyFile?: string | undefined;
}

/** Headers that curl sets by itself, or that belong to one connection only. */
const CURL_HEADERS = [
  'host',
  'connection',
  'content-length',
  'accept-encoding',
  'user-agent',
  'accept',
  'accept-language',
];

/** A curl command that repeats a request. Every part is quoted, so the shell runs nothing that is in a path or a body. */
export function toCurl({ method, url, headers, body, bodyFile }: CurlCall): string {
  const kept = Object.entries(headers).filter(([name]) => !CURL_HEADERS.includes(name) && !name.startsWith('sec-'));
  const parts = [
    'curl',
    ...(method === 'GET' ? [] : method === 'HEAD' ? ['--head'] : ['-X', method]),
    quote(url),
    ...kept.flatMap(([name, value]) => ['-H', quote(`${name}: ${value}`)]),
    ...(bodyFile !== undefined ? ['--data-binary', quote(`@${bodyFile}`)] : []),
    ...(bodyFile !== undefined || body === undefined || body === null ? [] : ['--data-raw', quote(body)]),
  ];
  return parts.join(' ');
}
