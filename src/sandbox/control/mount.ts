type Handle = (request: Request, signal?: AbortSignal) => Promise<Response>;

/**
 * Lets the page at `/` and the control surface under `/_sandbox/` answer before the service does; their code is loaded
 * with the first such request. Neither is logged, limited or struck by faults.
 */
export function withControl(service: Handle, load: () => Promise<Handle>): Handle {
  let control: Promise<Handle> | undefined;
  return async (request, signal) => {
    const { pathname } = new URL(request.url);
    const isPage = pathname === '/' && (request.method === 'GET' || request.method === 'HEAD');
    if (!isPage && pathname !== '/_sandbox' && !pathname.startsWith('/_sandbox/')) return service(request, signal);
    control ??= load();
    return (await control)(request);
  };
}
