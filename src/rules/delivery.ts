// "Was it sent?": whether a failure proves that a request never left this machine.

/** Depth to which causes of causes are examined: an error may be its own cause. */
export const MAX_CAUSES = 6;

/** Name resolution, whichever resolver was asked. Bun reports the other two for a connection that was never made. */
const NEVER_CONNECTED = /^(ENOTFOUND|EAI_[A-Z]+|UND_ERR_CONNECT_TIMEOUT|ConnectionRefused|FailedToOpenSocket)$/;

/** A certificate that was rejected, or a TLS handshake that did not end. */
const NO_TLS_SESSION =
  /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_[A-Z_]+|(CERT|CRL)_[A-Z_]+|HOSTNAME_MISMATCH|INVALID_CA|ERR_TLS_CERT_[A-Z_]+|ERR_TLS_HANDSHAKE_TIMEOUT|ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|UNSUPPORTED_PROTOCOL|(TLSV1|SSLV3|SSL\/TLS)_ALERT_HANDSHAKE_FAILURE|TLSV1_ALERT_PROTOCOL_VERSION|TLSV1_UNRECOGNIZED_NAME|NO_PROTOCOLS_AVAILABLE))$/;

/**
 * What only the message tells. libuv names the system call first, also where another library repeats its message without
 * the field; Node ends a handshake that broke off, undici a tunnel that a proxy refused, and Deno's client a connection
 * with words of their own.
 */
const NEVER_SENT_MESSAGE =
  /(^|reason: )(connect|getaddrinfo) E[A-Z_]+\b|^Client network socket disconnected before secure TLS connection was established|^Proxy response \(\d+\) !== 200 when HTTP Tunneling|client error \(Connect\)|^bad port$|wrong version number/;

/** System calls that fail before there is a connection. */
const BEFORE_A_CONNECTION: readonly unknown[] = ['connect', 'getaddrinfo'];

/**
 * Whether the failure proves that nothing of the request was sent: it came from name resolution, `connect`, a TLS handshake or
 * a proxy that refused the tunnel. A code alone proves nothing where a live socket reports it, too: `read EHOSTUNREACH`.
 */
export function provesUnsent(failure: unknown, depth = 0): boolean {
  if (!(failure instanceof Error) || depth > MAX_CAUSES) return false;
  // Its own code is that of one member: of one address that Node tried, or of one attempt.
  if (failure instanceof AggregateError) {
    return failure.errors.length > 0 && failure.errors.every((it) => provesUnsent(it, depth + 1));
  }
  return failedBeforeSending(failure) || provesUnsent(failure.cause, depth + 1);
}

function failedBeforeSending(error: Error & { readonly code?: unknown; readonly syscall?: unknown }): boolean {
  const { code, syscall, message } = error;
  if (syscall !== undefined) return BEFORE_A_CONNECTION.includes(syscall) || isKnown(String(code));
  return code === 'ECONNREFUSED' || isKnown(String(code)) || NEVER_SENT_MESSAGE.test(message);
}

function isKnown(code: string): boolean {
  return NEVER_CONNECTED.test(code) || NO_TLS_SESSION.test(code);
}
