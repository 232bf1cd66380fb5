// Keeps the framed page's requests inside this tab: `fetch` and XMLHttpRequest call the app around the frame.
import type { App } from './app.js';

/** Duration of a simulated upload, and its progress events. */
const UPLOAD_MS = 800;
const UPLOAD_STEPS = 16;

/** Replaces `fetch` and XMLHttpRequest of this window. */
export function stayInTab(app: App): void {
  const resolveUrl = (url: string | URL | Request) =>
    new URL(url instanceof Request ? url.url : url, location.href).href;
  window.fetch = (url, init) => app.fetch(resolveUrl(url), init);
  window.XMLHttpRequest = class extends TabRequest {
    protected request(init: RequestInit): Promise<Response> {
      return app.fetch(resolveUrl(this.url), init);
    }
  } as unknown as typeof XMLHttpRequest;
}

/** The part of XMLHttpRequest that `gen-client/page` uses. */
abstract class TabRequest {
  readonly upload: { onprogress?: (event: { readonly loaded: number }) => void } = {};
  onloadend?: () => void;
  status = 0;
  response: unknown = null;
  responseType = '';
  withCredentials = false;
  protected url = '';
  readonly #headers = new Headers();
  #method = 'GET';
  #isAborted = false;

  open(method: string, url: string): void {
    [this.#method, this.url] = [method, url];
  }

  setRequestHeader(name: string, value: string): void {
    this.#headers.set(name, value);
  }

  abort(): void {
    this.#isAborted = true;
    this.onloadend?.();
  }

  async send(file: Blob): Promise<void> {
    for (let step = 1; step <= UPLOAD_STEPS && !this.#isAborted; step++) {
      await new Promise((resolve) => setTimeout(resolve, UPLOAD_MS / UPLOAD_STEPS));
      this.upload.onprogress?.({ loaded: (file.size * step) / UPLOAD_STEPS });
    }
    if (this.#isAborted) return;
    try {
      const response = await this.request({ method: this.#method, headers: this.#headers, body: file });
      this.response = await response.json().catch(() => null);
      this.status = response.status;
    } finally {
      this.onloadend?.();
    }
  }

  /** Sends the request to the app. */
  protected abstract request(init: RequestInit): Promise<Response>;
}
