import { type NextRequest, NextResponse } from 'next/server';

/** Instead of your sessions: every visitor is a user. */
export function proxy(request: NextRequest) {
  const response = NextResponse.next();
  if (!request.cookies.has('user'))
    response.cookies.set('user', crypto.randomUUID(), { httpOnly: true, sameSite: 'lax' });
  return response;
}
