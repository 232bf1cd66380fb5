// Verifies AWS Signature Version 4. Written from its documentation, without code from src.
import { createHash, createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

export interface Account {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** An error as S3 reports it. */
export interface S3Error {
  readonly status: number;
  readonly code: string;
  readonly message?: string;
  readonly region?: string;
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();

/** Returns the error of a request, or undefined if its signature is valid. */
export function verifySignature(
  request: IncomingMessage,
  { account, region }: { readonly account: Account; readonly region: string },
): S3Error | undefined {
  const { headers } = request;
  const syntax = /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/;
  const [, credential = '', signedHeaders = '', signature = ''] = syntax.exec(headers.authorization ?? '') ?? [];
  if (credential === '') return { status: 403, code: 'AccessDenied' };
  const [keyId, day, scopeRegion, service, terminal] = credential.split('/');
  if (keyId !== account.accessKeyId) return { status: 403, code: 'InvalidAccessKeyId' };
  if (scopeRegion !== region || service !== 's3' || terminal !== 'aws4_request') {
    const message = `The authorization header is malformed; the region '${scopeRegion}' is wrong; expecting '${region}'`;
    return { status: 400, code: 'AuthorizationHeaderMalformed', message, region };
  }
  const timestamp = String(headers['x-amz-date'] ?? '');
  if (!/^\d{8}T\d{6}Z$/.test(timestamp) || !timestamp.startsWith(day ?? '?'))
    return { status: 403, code: 'AccessDenied', message: 'Invalid date' };
  const token = headers['x-amz-security-token'];
  if (account.sessionToken !== token) {
    return token === undefined || account.sessionToken === undefined
      ? { status: 403, code: 'InvalidToken' }
      : { status: 400, code: 'ExpiredToken' };
  }
  const names = signedHeaders.split(';');
  // S3 requires these headers to be signed.
  const mustBeSigned = Object.keys(headers).filter((name) => name === 'host' || name.startsWith('x-amz-'));
  if (mustBeSigned.some((name) => !names.includes(name)))
    return { status: 403, code: 'AccessDenied', message: 'There were headers present which were not signed' };
  const expected = signatureOf(request, { names, account, region, timestamp, day: day ?? '' });
  return expected === signature ? undefined : { status: 403, code: 'SignatureDoesNotMatch' };
}

interface SignatureParts {
  readonly names: readonly string[];
  readonly account: Account;
  readonly region: string;
  readonly timestamp: string;
  readonly day: string;
}

function signatureOf(request: IncomingMessage, { names, account, region, timestamp, day }: SignatureParts): string {
  const [path = '', query = ''] = (request.url ?? '').split('?');
  const canonicalHeaders = names.map((name) => {
    const value = request.headers[name];
    return `${name}:${(Array.isArray(value) ? value.join(',') : (value ?? '')).trim().replace(/ +/g, ' ')}\n`;
  });
  const canonical = [
    request.method,
    path
      .split('/')
      .map((part) => encode(decodeURIComponent(part)))
      .join('/'),
    query
      .split('&')
      .filter((pair) => pair !== '')
      .map((pair) => pair.split('=').map((side) => encode(decodeURIComponent(side))))
      .map(([name, value = '']) => `${name}=${value}`)
      .sort()
      .join('&'),
    canonicalHeaders.join(''),
    names.join(';'),
    request.headers['x-amz-content-sha256'],
  ].join('\n');
  const scope = [day, region, 's3', 'aws4_request'];
  const key = scope.reduce<string | Buffer>(hmac, `AWS4${account.secretAccessKey}`);
  return hmac(key, `AWS4-HMAC-SHA256\n${timestamp}\n${scope.join('/')}\n${sha256(canonical)}`).toString('hex');
}

/** Percent-encodes everything except letters, digits, and -._~ (RFC 3986). */
function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}
