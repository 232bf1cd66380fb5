// Determines if a failure proves that the request was never sent.

/** Maximum depth of nested causes, because a chain of causes may be circular. */
export const MAX_CAUSES = 6;

/** Errors of name resolution and of connecting. Bun reports the last two. */
const NEVER_CONNECTED = /^(ENOTFOUND|EAI_[A-Z]+|UND_ERR_CONNECT_TIMEOUT|ConnectionRefused|FailedToOpenSocket)$/;

/** A rejected certificate, or an incomplete TLS handshake. */
const NO_TLS_SESSION =
  /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_[A-Z_]+|(CERT|CRL)_[A-Z_]+|ERROR_IN_(CERT|CRL)_[A-Z_]+|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE)|PATH_LENGTH_EXCEEDED|ERR_TLS_CERT_[A-Z_]+|ERR_TLS_HANDSHAKE_TIMEOUT|ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|UNSUPPORTED_PROTOCOL|(TLSV1|SSLV3|SSL\/TLS)_ALERT_HANDSHAKE_FAILURE|TLSV1_ALERT_PROTOCOL_VERSION|TLSV1_UNRECOGNIZED_NAME|NO_PROTOCOLS_AVAILABLE))$/;

/**
 * Failures that only their message identifies: a system call at its start (libuv, and libraries that copy the message
 * without the field), Node's aborted handshake, undici's rejected proxy tunnel, and the failed connections of Bun and
 * Deno.
 */
const NEVER_SENT_MESSAGE =
  /(^|reason: )(connect|getaddrinfo) E[A-Z_]+\b|^Client network socket disconnected before secure TLS connection was established|^Proxy response \(\d+\) !== 200 when HTTP Tunneling|client error \(Connect\)|: Unable to connect\.|^bad port$|wrong version number/;

/** System calls that precede a connection. */
const SYSCALLS_BEFORE_CONNECTION: readonly unknown[] = ['connect', 'getaddrinfo'];

/**
 * Returns true if the failure proves that nothing of the request was sent. It must come from name resolution,
 * `connect`, a TLS handshake, or a proxy that rejected the tunnel. A code that a live socket can also report proves
 * nothing: `read EHOSTUNREACH`.
 */
export function provesUnsent(failure: unknown, depth = 0): boolean {
  if (!(failure instanceof Error) || depth > MAX_CAUSES) return false;
  // An AggregateError has the code of only one member, that is, of one of several addresses or attempts.
  if (failure instanceof AggregateError) {
    return failure.errors.length > 0 && failure.errors.every((member) => provesUnsent(member, depth + 1));
  }
  return failedBeforeSending(failure) || provesUnsent(failure.cause, depth + 1);
}

function failedBeforeSending(error: Error & { readonly code?: unknown; readonly syscall?: unknown }): boolean {
  const { code, syscall, message } = error;
  if (syscall !== undefined) return SYSCALLS_BEFORE_CONNECTION.includes(syscall) || isUnsentCode(String(code));
  return isUnsentCode(String(code)) || NEVER_SENT_MESSAGE.test(message);
}

function isUnsentCode(code: string): boolean {
  return NEVER_CONNECTED.test(code) || NO_TLS_SESSION.test(code);
}
