// "Was it sent?": errors from runtimes and libraries. A create counts as unsent only if the error proves it.
import { describe, expect, it } from 'vitest';
import { ConnectionError } from '../../../src/index.js';
import { provesUnsent } from '../../../src/rules/delivery.js';
import { failureKindOf } from '../../../src/rules/failure-kind.js';

/** Creates a system call's error, as in libuv. */
const system = (syscall: string, code: string) =>
  Object.assign(new Error(`${syscall} ${code} 203.0.113.7:443`), { code, syscall, errno: -113 });
const coded = (code: string, message = code) => Object.assign(new Error(message), { code });
const plain = (message: string) => new Error(message);
const several = (code: string, ...errors: Error[]) => Object.assign(new AggregateError(errors), { code });
const fetchFailed = (cause: unknown) => new TypeError('fetch failed', { cause });

const TLS_MIDDLE = 'Client network socket disconnected before secure TLS connection was established';
const WRONG_VERSION =
  '400D6773A87F0000:error:0A00010B:SSL routines:tls_validate_record_header:wrong version number:tlsany_meth.c:77:';

describe('a request was never sent', () => {
  it.each<[source: string, failure: unknown]>([
    ['Node: refused', system('connect', 'ECONNREFUSED')],
    ['Node: no route before the connection', system('connect', 'EHOSTUNREACH')],
    ['Node: reset while connecting', system('connect', 'ECONNRESET')],
    ['Node: no network', system('connect', 'ENETUNREACH')],
    ['Node: interface down', system('connect', 'ENETDOWN')],
    ['Node: out of file descriptors', system('connect', 'EMFILE')],
    ['Node: a local firewall', system('connect', 'EPERM')],
    ['Node: connect timed out', system('connect', 'ETIMEDOUT')],
    ['Node: unknown host', system('getaddrinfo', 'ENOTFOUND')],
    ['Node: resolver unavailable', system('getaddrinfo', 'EAI_AGAIN')],
    ['c-ares: unknown host', system('queryA', 'ENOTFOUND')],
    ['undici: connect timeout, TLS included', coded('UND_ERR_CONNECT_TIMEOUT', 'Connect Timeout Error')],
    [
      'node#54359: happy eyeballs, no address responds',
      several('ETIMEDOUT', system('connect', 'ETIMEDOUT'), system('connect', 'ENETUNREACH')),
    ],
    ['stream-js#526: connection closed in the TLS handshake', coded('ECONNRESET', TLS_MIDDLE)],
    ['chat-ui#387: https URL, plain-HTTP port', coded('ERR_SSL_WRONG_VERSION_NUMBER', WRONG_VERSION)],
    [
      'older Node: https URL, plain-HTTP port',
      Object.assign(new Error(`write EPROTO ${WRONG_VERSION}`), { code: 'EPROTO', errno: -71 }),
    ],
    ['Node 24: no common cipher', coded('ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE')],
    ['Node: self-signed certificate', coded('DEPTH_ZERO_SELF_SIGNED_CERT')],
    ['Node: unknown issuer', coded('UNABLE_TO_VERIFY_LEAF_SIGNATURE')],
    ['Node: expired certificate', coded('CERT_HAS_EXPIRED')],
    ['Node: certificate of another host', coded('ERR_TLS_CERT_ALTNAME_INVALID')],
    ['Node: certificate for another purpose', coded('INVALID_PURPOSE', 'unsuitable certificate purpose')],
    ['Node: certificate chain longer than its issuer allows', coded('PATH_LENGTH_EXCEEDED')],
    ['Node: rejected certificate', coded('CERT_REJECTED')],
    ['Node: certificate with a malformed date', coded('ERROR_IN_CERT_NOT_AFTER_FIELD')],
    ['Node: revocation list with a malformed date', coded('ERROR_IN_CRL_NEXT_UPDATE_FIELD')],
    [
      'wstunnel#545: undici, proxy responds to CONNECT with 407',
      new DOMException('Request was cancelled.', {
        name: 'AbortError',
        cause: coded('UND_ERR_ABORTED', 'Proxy response (407) !== 200 when HTTP Tunneling'),
      } as never),
    ],
    [
      'node-fetch 2: repeats the message without the field',
      plain('request to https://x.test/ failed, reason: connect EHOSTUNREACH 203.0.113.7:443'),
    ],
    ['WHATWG: blocked port', plain('bad port')],
    [
      'Bun 1.4: refused',
      coded('ECONNREFUSED', 'ECONNREFUSED: Unable to connect. Is the computer able to access the url?'),
    ],
    ['Bun: refused', coded('ConnectionRefused', 'Unable to connect. Is the computer able to access the url?')],
    ['Bun: no socket', coded('FailedToOpenSocket', 'Was there a typo in the url or port?')],
    [
      'Deno: refused',
      plain(
        'error sending request for url (http://x.test/): client error (Connect): tcp connect error: Connection refused (os error 111)',
      ),
    ],
    [
      'Deno: unknown host',
      plain(
        'error sending request for url (http://x.test/): client error (Connect): dns error: failed to lookup address information',
      ),
    ],
    [
      'a fetch that retries: each connection was refused',
      several('', fetchFailed(system('connect', 'ECONNREFUSED')), fetchFailed(system('connect', 'ECONNREFUSED'))),
    ],
  ])('%s', (_, failure) => {
    expect(provesUnsent(fetchFailed(failure))).toBe(true);
    expect(failureKindOf(new ConnectionError('x', { cause: fetchFailed(failure) }))).toBe('unsent');
  });
});

describe('a request may have arrived', () => {
  it.each<[source: string, failure: unknown]>([
    ['opencode#26807: route lost on a live socket', system('read', 'EHOSTUNREACH')],
    ['Node: network down on a live socket', system('read', 'ENETDOWN')],
    ['Node: no network on a live socket', system('write', 'ENETUNREACH')],
    ['Node: reset', system('read', 'ECONNRESET')],
    ['Node: keep-alive probe failed', system('read', 'ETIMEDOUT')],
    ['Node: broken pipe', system('write', 'EPIPE')],
    ['Node: a firewall cut a live socket', system('write', 'EPERM')],
    ['undici: closed by the server', coded('UND_ERR_SOCKET', 'other side closed')],
    ['undici: headers timeout', coded('UND_ERR_HEADERS_TIMEOUT')],
    ['undici: aborted for another reason', coded('UND_ERR_ABORTED', 'Request aborted')],
    [
      'TLS 1.3: the server requests a client certificate after the handshake',
      coded('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'),
    ],
    ['TLS: a damaged record', coded('ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC')],
    ['Bun: closed', coded('ECONNRESET', 'The socket connection was closed unexpectedly.')],
    [
      'Deno: closed',
      plain(
        'error sending request for url (http://x.test/): client error (SendRequest): connection closed before message completed',
      ),
    ],
    ['workerd: closed', plain('Network connection lost.')],
    ['a browser', plain('Failed to fetch')],
    [
      'a fetch that retries: one attempt may have arrived',
      several('', system('connect', 'ECONNREFUSED'), system('read', 'ECONNRESET')),
    ],
    ['Node: refused under a live socket', system('read', 'ECONNREFUSED')],
    ['the code alone, without the system call', coded('ECONNREFUSED', 'refused')],
    ['an AggregateError without members', several('ECONNREFUSED')],
    ['a string', 'connect ECONNREFUSED'],
  ])('%s', (_, failure) => {
    expect(provesUnsent(fetchFailed(failure))).toBe(false);
    expect(failureKindOf(new ConnectionError('x', { cause: fetchFailed(failure) }))).toBe('lost');
  });
});

it('an error that is its own cause causes no endless loop', () => {
  const own = plain('x');
  own.cause = own;
  expect(provesUnsent(own)).toBe(false);
});
