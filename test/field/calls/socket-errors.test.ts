// Connection errors of runtimes and libraries. A create counts as unsent only if the error proves it.
import { describe, expect, it } from 'vitest';
import { ConnectionError } from '../../../src/index.js';
import { provesUnsent } from '../../../src/rules/delivery.js';
import { failureKindOf } from '../../../src/rules/failure-kind.js';

/** Creates the error of a failed system call, like libuv. */
const systemError = (syscall: string, code: string) =>
  Object.assign(new Error(`${syscall} ${code} 203.0.113.7:443`), { code, syscall, errno: -113 });
const codedError = (code: string, message = code) => Object.assign(new Error(message), { code });
const plainError = (message: string) => new Error(message);
const aggregateError = (code: string, ...errors: Error[]) => Object.assign(new AggregateError(errors), { code });
const fetchFailed = (cause: unknown) => new TypeError('fetch failed', { cause });

const TLS_MIDDLE = 'Client network socket disconnected before secure TLS connection was established';
const WRONG_VERSION =
  '400D6773A87F0000:error:0A00010B:SSL routines:tls_validate_record_header:wrong version number:tlsany_meth.c:77:';

describe('a request was never sent', () => {
  it.each<[source: string, failure: unknown]>([
    ['Node: refused', systemError('connect', 'ECONNREFUSED')],
    ['Node: no route before the connection', systemError('connect', 'EHOSTUNREACH')],
    ['Node: reset while connecting', systemError('connect', 'ECONNRESET')],
    ['Node: no network', systemError('connect', 'ENETUNREACH')],
    ['Node: interface down', systemError('connect', 'ENETDOWN')],
    ['Node: out of file descriptors', systemError('connect', 'EMFILE')],
    ['Node: a local firewall', systemError('connect', 'EPERM')],
    ['Node: connect timed out', systemError('connect', 'ETIMEDOUT')],
    ['Node: unknown host', systemError('getaddrinfo', 'ENOTFOUND')],
    ['Node: resolver unavailable', systemError('getaddrinfo', 'EAI_AGAIN')],
    ['c-ares: unknown host', systemError('queryA', 'ENOTFOUND')],
    ['undici: connect timeout, TLS included', codedError('UND_ERR_CONNECT_TIMEOUT', 'Connect Timeout Error')],
    [
      'node#54359: happy eyeballs, no address responds',
      aggregateError('ETIMEDOUT', systemError('connect', 'ETIMEDOUT'), systemError('connect', 'ENETUNREACH')),
    ],
    ['stream-js#526: connection closed in the TLS handshake', codedError('ECONNRESET', TLS_MIDDLE)],
    ['chat-ui#387: https URL, plain-HTTP port', codedError('ERR_SSL_WRONG_VERSION_NUMBER', WRONG_VERSION)],
    [
      'older Node: https URL, plain-HTTP port',
      Object.assign(new Error(`write EPROTO ${WRONG_VERSION}`), { code: 'EPROTO', errno: -71 }),
    ],
    ['Node 24: no common cipher', codedError('ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE')],
    ['Node: self-signed certificate', codedError('DEPTH_ZERO_SELF_SIGNED_CERT')],
    ['Node: unknown issuer', codedError('UNABLE_TO_VERIFY_LEAF_SIGNATURE')],
    ['Node: expired certificate', codedError('CERT_HAS_EXPIRED')],
    ['Node: certificate of another host', codedError('ERR_TLS_CERT_ALTNAME_INVALID')],
    ['Node: certificate for another purpose', codedError('INVALID_PURPOSE', 'unsuitable certificate purpose')],
    ['Node: certificate chain that is longer than its issuer allows', codedError('PATH_LENGTH_EXCEEDED')],
    ['Node: rejected certificate', codedError('CERT_REJECTED')],
    ['Node: certificate with a malformed date', codedError('ERROR_IN_CERT_NOT_AFTER_FIELD')],
    ['Node: revocation list with a malformed date', codedError('ERROR_IN_CRL_NEXT_UPDATE_FIELD')],
    [
      'wstunnel#545: undici, proxy responds to CONNECT with 407',
      new DOMException('Request was cancelled.', {
        name: 'AbortError',
        cause: codedError('UND_ERR_ABORTED', 'Proxy response (407) !== 200 when HTTP Tunneling'),
      } as never),
    ],
    [
      'node-fetch 2: repeats the message without the field',
      plainError('request to https://x.test/ failed, reason: connect EHOSTUNREACH 203.0.113.7:443'),
    ],
    ['WHATWG: blocked port', plainError('bad port')],
    [
      'Bun 1.4: refused',
      codedError('ECONNREFUSED', 'ECONNREFUSED: Unable to connect. Is the computer able to access the url?'),
    ],
    ['Bun: refused', codedError('ConnectionRefused', 'Unable to connect. Is the computer able to access the url?')],
    ['Bun: no socket', codedError('FailedToOpenSocket', 'Was there a typo in the url or port?')],
    [
      'Deno: refused',
      plainError(
        'error sending request for url (http://x.test/): client error (Connect): tcp connect error: Connection refused (os error 111)',
      ),
    ],
    [
      'Deno: unknown host',
      plainError(
        'error sending request for url (http://x.test/): client error (Connect): dns error: failed to lookup address information',
      ),
    ],
    [
      'a fetch that retries: each connection was refused',
      aggregateError(
        '',
        fetchFailed(systemError('connect', 'ECONNREFUSED')),
        fetchFailed(systemError('connect', 'ECONNREFUSED')),
      ),
    ],
  ])('%s', (_, failure) => {
    expect(provesUnsent(fetchFailed(failure))).toBe(true);
    expect(failureKindOf(new ConnectionError('x', { cause: fetchFailed(failure) }))).toBe('unsent');
  });
});

describe('a request may have arrived', () => {
  it.each<[source: string, failure: unknown]>([
    ['opencode#26807: route lost on a live socket', systemError('read', 'EHOSTUNREACH')],
    ['Node: network down on a live socket', systemError('read', 'ENETDOWN')],
    ['Node: no network on a live socket', systemError('write', 'ENETUNREACH')],
    ['Node: reset', systemError('read', 'ECONNRESET')],
    ['Node: keep-alive probe failed', systemError('read', 'ETIMEDOUT')],
    ['Node: broken pipe', systemError('write', 'EPIPE')],
    ['Node: a firewall cut a live socket', systemError('write', 'EPERM')],
    ['undici: closed by the server', codedError('UND_ERR_SOCKET', 'other side closed')],
    ['undici: headers timeout', codedError('UND_ERR_HEADERS_TIMEOUT')],
    ['undici: aborted for another reason', codedError('UND_ERR_ABORTED', 'Request aborted')],
    [
      'TLS 1.3: the server requests a client certificate after the handshake',
      codedError('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'),
    ],
    ['TLS: a damaged record', codedError('ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC')],
    ['Bun: closed', codedError('ECONNRESET', 'The socket connection was closed unexpectedly.')],
    [
      'Deno: closed',
      plainError(
        'error sending request for url (http://x.test/): client error (SendRequest): connection closed before message completed',
      ),
    ],
    ['workerd: closed', plainError('Network connection lost.')],
    ['a browser', plainError('Failed to fetch')],
    [
      'a fetch that retries: one attempt may have arrived',
      aggregateError('', systemError('connect', 'ECONNREFUSED'), systemError('read', 'ECONNRESET')),
    ],
    ['Node: refused under a live socket', systemError('read', 'ECONNREFUSED')],
    ['the code alone, without the system call', codedError('ECONNREFUSED', 'refused')],
    ['an AggregateError without members', aggregateError('ECONNREFUSED')],
    ['a string', 'connect ECONNREFUSED'],
  ])('%s', (_, failure) => {
    expect(provesUnsent(fetchFailed(failure))).toBe(false);
    expect(failureKindOf(new ConnectionError('x', { cause: fetchFailed(failure) }))).toBe('lost');
  });
});

it('an error that is its own cause causes no endless loop', () => {
  const error = plainError('x');
  error.cause = error;
  expect(provesUnsent(error)).toBe(false);
});
