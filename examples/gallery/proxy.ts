import { type NextRequest, NextResponse } from 'next/server';

/** Makes every visitor a user. Use your sessions instead. */
export function proxy(request: NextRequest) {
  const response = NextResponse.next();
  if (!request.cookies.has('user'))
    response.cookies.set('user', crypto.randomUUID(), { httpOnly: true, sameSite: 'lax' });
  return response;
}
